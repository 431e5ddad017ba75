/*
 * Waits in known ways, and says how often the kernel took it off the CPU and for how long it was
 * away. Prints "ready", begins with SIGUSR1, prints a report as one line of JSON, and waits to be
 * stopped.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAPS 200
#define CALLS 200
#define SYNCS 100
#define ROUNDS 2000
#define SPIN_NS 2000000000L
/* One call chain for each number of this many bits. */
#define CHAIN_BITS 6
/* Rounds between two looks at the clock. */
#define ROUNDS_A_LOOK 64

static long clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* What one thread was told by the kernel about itself. */
struct account {
    long voluntary;
    long involuntary;
    long wall_ns;
    long cpu_ns;
};

static struct account account(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (struct account){usage.ru_nvcsw, usage.ru_nivcsw, clock_ns(CLOCK_MONOTONIC),
                            clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

static _Atomic long voluntary, involuntary, away_ns;

static void add_since(struct account before)
{
    struct account after = account();
    voluntary += after.voluntary - before.voluntary;
    involuntary += after.involuntary - before.involuntary;
    away_ns += after.wall_ns - before.wall_ns - (after.cpu_ns - before.cpu_ns);
}

__attribute__((noinline)) static void nap(void)
{
    struct timespec time = {0, 5000000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

static void *nap_often(void *unused)
{
    (void)unused;
    struct account before = account();
    for (int i = 0; i < NAPS; i++)
        nap();
    add_since(before);
    return NULL;
}

static _Atomic uint32_t turn;

__attribute__((noinline)) static void hand_over(uint32_t mine)
{
    /* The value that was looked at: with a newer one the other thread's wake-up could come before the wait. */
    uint32_t seen;
    while ((seen = atomic_load(&turn)) % 2 != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_add(&turn, 1);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *hand_over_often(void *number)
{
    struct account before = account();
    for (int i = 0; i < ROUNDS; i++)
        hand_over((uint32_t)(uintptr_t)number);
    add_since(before);
    return NULL;
}

static int pipes[2][2];

__attribute__((noinline)) static void pass_along(int number)
{
    char byte = 0;
    if (number == 0 && write(pipes[1][1], &byte, 1) != 1)
        abort();
    if (read(pipes[number][0], &byte, 1) != 1)
        abort();
    if (number == 1 && write(pipes[0][1], &byte, 1) != 1)
        abort();
}

static void *pass_along_often(void *number)
{
    struct account before = account();
    for (int i = 0; i < ROUNDS; i++)
        pass_along((int)(uintptr_t)number);
    add_since(before);
    return NULL;
}

/* A file on a disk. */
static int file = -1;

__attribute__((noinline)) static void sync_once(void)
{
    static char block[4096];
    block[0]++;
    if (pwrite(file, block, sizeof(block), 0) != sizeof(block) || fsync(file) != 0)
        abort();
}

static void *sync_often(void *unused)
{
    (void)unused;
    struct account before = account();
    for (int i = 0; i < SYNCS; i++)
        sync_once();
    add_since(before);
    return NULL;
}

static int listener;
static struct sockaddr_in address;

__attribute__((noinline)) static void take_call(void)
{
    int taken = accept(listener, NULL, NULL);
    if (taken < 0)
        abort();
    close(taken);
}

/* The first thread takes calls, the other one makes them. */
static void *call_often(void *number)
{
    struct account before = account();
    for (int i = 0; i < CALLS; i++) {
        if (number == NULL) {
            take_call();
            continue;
        }
        nap();
        int made = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(made, (struct sockaddr *)&address, sizeof(address)) != 0)
            abort();
        close(made);
    }
    if (number == NULL)
        add_since(before);
    return NULL;
}

static int listen_here(void)
{
    socklen_t length = sizeof(address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    return bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(listener, 16) == 0 &&
           getsockname(listener, (struct sockaddr *)&address, &length) == 0;
}

/* Long and short waits in turn, for as long as it is told. */
static long mixed_ns;

__attribute__((noipa)) static void long_wait(void)
{
    struct timespec time = {0, 2000000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

__attribute__((noipa)) static void short_wait(void)
{
    struct timespec time = {0, 200000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

static void *mix(void *unused)
{
    (void)unused;
    struct account before = account();
    long end = clock_ns(CLOCK_MONOTONIC) + mixed_ns;
    while (clock_ns(CLOCK_MONOTONIC) < end) {
        long_wait();
        for (int i = 0; i < 5; i++)
            short_wait();
    }
    add_since(before);
    return NULL;
}

static long volley_ns;
static _Atomic int volleys_end;
static long volleys;

/* Passes bytes to and fro until the time is over. */
static void *volley(void *number)
{
    int mine = (int)(uintptr_t)number;
    long end = clock_ns(CLOCK_MONOTONIC) + volley_ns;
    while (!atomic_load_explicit(&volleys_end, memory_order_relaxed)) {
        pass_along(mine);
        if (mine == 0 && ++volleys % ROUNDS_A_LOOK == 0 && clock_ns(CLOCK_MONOTONIC) >= end) {
            volleys_end = 1;
            /* The other one waits for its next byte, or sees that this was the last. */
            if (write(pipes[1][1], "", 1) != 1)
                abort();
        }
    }
    return NULL;
}

/* Not merged and not cloned: every function is a frame of its own. */
#define CHAIN(bit, left, right, next_left, next_right)                                             \
    __attribute__((noipa)) static void left(int number)                                            \
    {                                                                                              \
        number >> (bit) & 1 ? next_right(number) : next_left(number);                              \
        __asm__ volatile("");                                                                      \
    }                                                                                              \
    __attribute__((noipa)) static void right(int number)                                           \
    {                                                                                              \
        number >> (bit) & 1 ? next_right(number) : next_left(number);                              \
        __asm__ volatile("");                                                                      \
    }

__attribute__((noipa)) static void rest(int number)
{
    (void)number;
    struct timespec time = {0, 300000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

CHAIN(6, left_5, right_5, rest, rest)
CHAIN(5, left_4, right_4, left_5, right_5)
CHAIN(4, left_3, right_3, left_4, right_4)
CHAIN(3, left_2, right_2, left_3, right_3)
CHAIN(2, left_1, right_1, left_2, right_2)
CHAIN(1, left_0, right_0, left_1, right_1)

/* Chain n is taken n + 1 times, all of them in turn. */
static void *take_chains(void *unused)
{
    (void)unused;
    struct account before = account();
    for (int round = 0; round < 1 << CHAIN_BITS; round++)
        for (int number = round; number < 1 << CHAIN_BITS; number++)
            number & 1 ? right_0(number) : left_0(number);
    add_since(before);
    return NULL;
}

__attribute__((noinline)) static void spin(void)
{
    long end = clock_ns(CLOCK_MONOTONIC) + SPIN_NS;
    while (clock_ns(CLOCK_MONOTONIC) < end)
        for (volatile int i = 0; i < 10000; i++)
            ;
}

static void *spin_long(void *unused)
{
    (void)unused;
    struct account before = account();
    spin();
    add_since(before);
    return NULL;
}

__attribute__((noinline)) static void stuck(void)
{
    char byte;
    if (read(pipes[0][0], &byte, 1) != 1)
        abort();
}

static void *stuck_forever(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "stuck");
    stuck();
    return NULL;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    int received;
    sigwait(&signals, &received);
    void *(*run)(void *) = NULL;
    long threads = 2;
    if (strcmp(mode, "nap") == 0) {
        run = nap_often;
        threads = 1;
    } else if (strcmp(mode, "futex") == 0) {
        run = hand_over_often;
    } else if (strcmp(mode, "pipe") == 0) {
        run = pass_along_often;
    } else if (strcmp(mode, "fsync") == 0) {
        run = sync_often;
        threads = 1;
        file = open(count > 2 ? arguments[2] : "", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0)
            return 3;
    } else if (strcmp(mode, "accept") == 0) {
        run = call_often;
        if (!listen_here())
            return 3;
    } else if (strcmp(mode, "mixed") == 0) {
        run = mix;
        threads = 4;
        mixed_ns = count > 2 ? atol(arguments[2]) * 1000000 : 0;
    } else if (strcmp(mode, "volley") == 0) {
        /* On one CPU, so that nothing but switches happens between two bytes. */
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET((size_t)sched_getcpu(), &cpus);
        sched_setaffinity(0, sizeof(cpus), &cpus);
        run = volley;
        volley_ns = count > 2 ? atol(arguments[2]) * 1000000 : 0;
    } else if (strcmp(mode, "chains") == 0) {
        run = take_chains;
        threads = 1;
    } else if (strcmp(mode, "starve") == 0) {
        run = spin_long;
        threads = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    } else if (strcmp(mode, "stuck") == 0) {
        run = stuck_forever;
        threads = 1;
    } else {
        return 2;
    }
    pthread_t started[256];
    if (threads > 256)
        threads = 256;
    long began_ns = clock_ns(CLOCK_REALTIME);
    for (long i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, run, (void *)i);
    if (run != stuck_forever)
        for (long i = 0; i < threads; i++)
            pthread_join(started[i], NULL);
    printf("{\"voluntary\": %ld, \"involuntary\": %ld, \"away_ns\": %ld, \"began_ns\": %ld, "
           "\"volleys\": %ld, \"lasted_ns\": %ld, \"spent_ns\": %ld}\n",
           voluntary, involuntary, away_ns, began_ns, volleys,
           clock_ns(CLOCK_REALTIME) - began_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    fflush(stdout);
    pause();
    return 0;
}
