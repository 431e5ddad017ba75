/*
 * Event loops that are held in known ways. Prints "ready", begins with SIGUSR1, prints a report as
 * one line of JSON, and waits to be stopped.
 *
 * Modes: "known" (one loop that is held by known functions, one that is not, one that waits in epoll
 * for long), "many" (threads with one stall each, which end), "stuck" (one does not come back),
 * "ping" and "other" (how long calls of epoll and of something else take, for so many milliseconds).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define STALLS 5
#define TURNS 400
#define MANY 150
/* Stalls of the tests are from 40 ms on; the kernel's turns are a little longer than ours. */
#define LONG_NS (38 * MS)

static long clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

struct loop {
    int epoll;
    int event;
    /* When it last came back from epoll, and the lengths of its turns. */
    long came_ns;
    long turns;
    /* Turns of about LONG_NS and longer. */
    long long_turns;
};

static void open_loop(struct loop *loop, const char *name)
{
    struct epoll_event wanted = {.events = EPOLLIN};
    memset(loop, 0, sizeof(*loop));
    prctl(PR_SET_NAME, name);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->epoll < 0 || loop->event < 0 ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->event, &wanted) != 0)
        abort();
}

/* Ends the turn, and begins the next one; with each of the calls in turn. Returns the length of the
 * turn that has ended. */
static long go_round(struct loop *loop, int timeout_ms)
{
    struct epoll_event event;
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * MS};
    long turn_ns = loop->came_ns == 0 ? 0 : clock_ns(CLOCK_MONOTONIC) - loop->came_ns;
    int result;
    switch (loop->turns % 3) {
    case 0:
        result = epoll_wait(loop->epoll, &event, 1, timeout_ms);
        break;
    case 1:
        result = epoll_pwait(loop->epoll, &event, 1, timeout_ms, NULL);
        break;
    default:
        result = syscall(SYS_epoll_pwait2, loop->epoll, &event, 1, &timeout, NULL, 0);
    }
    if (result < 0)
        abort();
    loop->came_ns = clock_ns(CLOCK_MONOTONIC);
    loop->turns++;
    if (turn_ns >= LONG_NS)
        loop->long_turns++;
    return turn_ns;
}

static void ring(struct loop *loop)
{
    uint64_t one = 1;
    if (write(loop->event, &one, sizeof(one)) != sizeof(one))
        abort();
}

static void answer(struct loop *loop)
{
    uint64_t count;
    if (read(loop->event, &count, sizeof(count)) != sizeof(count))
        abort();
}

__attribute__((noipa)) static void hold_cpu(long ns)
{
    long end = clock_ns(CLOCK_MONOTONIC) + ns;
    while (clock_ns(CLOCK_MONOTONIC) < end)
        for (volatile int i = 0; i < 2000; i++)
            ;
    __asm__ volatile("");
}

__attribute__((noipa)) static void hold_sleep(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

/* What a loop was held by, as it measured itself. */
struct held {
    const char *by;
    long turn_ns;
};

static struct held held[2 * STALLS];

/* A thread that prints nothing leaves its numbers here. */
static struct loop served, well, patient;
static long served_tid, well_tid, patient_tid;

static void *serve(void *unused)
{
    (void)unused;
    served_tid = syscall(SYS_gettid);
    open_loop(&served, "served");
    for (int i = 0; i < 2 * STALLS; i++) {
        ring(&served);
        go_round(&served, 1000);
        answer(&served);
        held[i].by = i % 2 ? "hold_sleep" : "hold_cpu";
        if (i % 2)
            hold_sleep(80 * MS);
        else
            hold_cpu(60 * MS);
        /* A short rest in epoll, after which the timers are served. */
        held[i].turn_ns = go_round(&served, 30);
    }
    /* Sleeps for ever, in epoll. */
    go_round(&served, 100000);
    return NULL;
}

/* Never held for long. */
static void *behave(void *unused)
{
    (void)unused;
    well_tid = syscall(SYS_gettid);
    open_loop(&well, "well");
    for (int i = 0; i < TURNS; i++) {
        ring(&well);
        go_round(&well, 1000);
        answer(&well);
    }
    go_round(&well, 100000);
    return NULL;
}

/* Waits for long, which is no stall. */
static void *wait_long(void *unused)
{
    (void)unused;
    patient_tid = syscall(SYS_gettid);
    open_loop(&patient, "patient");
    for (int i = 0; i < 4; i++)
        go_round(&patient, 300);
    go_round(&patient, 100000);
    return NULL;
}

static void *stall_once(void *unused)
{
    struct loop loop;
    (void)unused;
    open_loop(&loop, "once");
    ring(&loop);
    go_round(&loop, 1000);
    hold_sleep(50 * MS);
    go_round(&loop, 0);
    close(loop.epoll);
    close(loop.event);
    return NULL;
}

static _Atomic long stuck_since_ns;

static void *get_stuck(void *unused)
{
    struct loop loop;
    (void)unused;
    open_loop(&loop, "stuck");
    ring(&loop);
    go_round(&loop, 1000);
    answer(&loop);
    stuck_since_ns = loop.came_ns;
    for (;;)
        hold_sleep(500 * MS);
    return NULL;
}

/* Passes an event to itself and takes it, as fast as it can. */
static long ping_ns, pings, ping_cpu_ns;
static int other;

static void *ping(void *unused)
{
    struct loop loop;
    struct epoll_event event;
    (void)unused;
    open_loop(&loop, "ping");
    ring(&loop);
    long cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    long end = clock_ns(CLOCK_MONOTONIC) + ping_ns;
    while (clock_ns(CLOCK_MONOTONIC) < end)
        for (int i = 0; i < 1000; i++, pings++)
            if (other ? syscall(SYS_getppid) == 0 : epoll_wait(loop.epoll, &event, 1, 1000) != 1)
                abort();
    ping_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    return NULL;
}

static void report_known(void)
{
    printf("{\"threads\": [");
    struct {
        const char *name;
        long tid;
        struct loop *loop;
    } all[] = {{"served", served_tid, &served},
               {"well", well_tid, &well},
               {"patient", patient_tid, &patient}};
    for (int i = 0; i < 3; i++)
        printf("%s{\"name\": \"%s\", \"tid\": %ld, \"turns\": %ld, \"long_turns\": %ld}",
               i ? ", " : "", all[i].name, all[i].tid, all[i].loop->turns,
               all[i].loop->long_turns);
    printf("], \"held\": [");
    for (int i = 0; i < 2 * STALLS; i++)
        printf("%s{\"by\": \"%s\", \"turn_ns\": %ld}", i ? ", " : "", held[i].by,
               held[i].turn_ns);
    printf("]}\n");
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    pthread_t threads[MANY];
    sigset_t signals;
    int received;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    puts("ready");
    fflush(stdout);
    sigwait(&signals, &received);
    if (strcmp(mode, "known") == 0) {
        void *(*runs[])(void *) = {serve, behave, wait_long};
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, runs[i], NULL) != 0)
                abort();
        /* All of them are in their last call, and stay there. */
        hold_sleep(900 * MS);
        while (served.turns < 4 * STALLS || well.turns < TURNS || patient.turns < 4)
            hold_sleep(20 * MS);
        hold_sleep(100 * MS);
        report_known();
    } else if (strcmp(mode, "many") == 0) {
        for (int i = 0; i < MANY; i++)
            if (pthread_create(&threads[i], NULL, stall_once, NULL) != 0)
                abort();
        for (int i = 0; i < MANY; i++)
            pthread_join(threads[i], NULL);
        printf("{\"stalls\": %d}\n", MANY);
    } else if (strcmp(mode, "stuck") == 0) {
        if (pthread_create(&threads[0], NULL, get_stuck, NULL) != 0)
            abort();
        while (stuck_since_ns == 0)
            hold_sleep(MS);
        printf("{\"since_ns\": %ld}\n",
               stuck_since_ns + clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    } else if (strcmp(mode, "ping") == 0 || strcmp(mode, "other") == 0) {
        other = strcmp(mode, "other") == 0;
        ping_ns = (count > 2 ? atol(arguments[2]) : 1000) * MS;
        if (pthread_create(&threads[0], NULL, ping, NULL) != 0)
            abort();
        pthread_join(threads[0], NULL);
        printf("{\"calls\": %ld, \"cpu_ns\": %ld}\n", pings, ping_cpu_ns);
    } else {
        return 2;
    }
    fflush(stdout);
    pause();
    return 0;
}
