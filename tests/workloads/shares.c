/*
 * Burns CPU in three functions whose shares are known: each runs in slices that are measured with
 * the thread's own CPU clock, 60/30/10 by default, so the shares hold whatever the machine does.
 * Prints what it measured as one line of JSON when --seconds are over or SIGTERM arrives.
 * With --cycle-us cycles have all this length, by the clock on the wall.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIXTY, THIRTY, TEN, KERNEL, FUNCTIONS };
enum { MAX_THREADS = 8, BUFFER_BYTES = 1 << 20 };

/* A cycle through all functions lasts this long on average. */
static const uint64_t CYCLE_NS = 20 * 1000 * 1000;

static const char *const NAMES[FUNCTIONS] = {"hot_sixty", "hot_thirty", "hot_ten", "hot_kernel"};

struct worker {
    pthread_t thread;
    int tid;
    char name[16];
    uint64_t weight[FUNCTIONS];
    uint64_t spent_ns[FUNCTIONS];
    uint64_t units[FUNCTIONS];
    uint64_t state;
    uint64_t depth;
    char *buffer;
};

static atomic_int stopping;
static int zero_fd;
static uint64_t fixed_cycle_ns;
static struct worker workers[MAX_THREADS];

static uint64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t cpu_ns(void) { return now_ns(CLOCK_THREAD_CPUTIME_ID); }

/* Each unit below takes some hundred microseconds, so that reading the clock costs next to nothing. */
__attribute__((noinline)) static uint64_t hot_sixty(struct worker *w, uint64_t until) {
    uint64_t now;
    do {
        for (int i = 0; i < 200000; i++) w->state = w->state * 6364136223846793005u + 1442695040888963407u;
        w->units[SIXTY]++;
        now = cpu_ns();
    } while (now < until);
    return now;
}

__attribute__((noinline)) static uint64_t hot_thirty(struct worker *w, uint64_t until) {
    uint64_t now;
    do {
        for (int i = 0; i < 150000; i++) {
            w->state ^= w->state << 13;
            w->state ^= w->state >> 7;
            w->state ^= w->state << 17;
        }
        w->units[THIRTY]++;
        now = cpu_ns();
    } while (now < until);
    return now;
}

__attribute__((noinline)) static uint64_t hot_ten(struct worker *w, uint64_t until) {
    uint64_t now;
    do {
        for (int i = 0; i < 40000; i++) w->state = w->state / 3 + 0x9e3779b97f4a7c15u;
        w->units[TEN]++;
        now = cpu_ns();
    } while (now < until);
    return now;
}

/* The system call is made in place: libc's wrapper keeps no frame pointer and would hide us. */
__attribute__((noinline)) static uint64_t hot_kernel(struct worker *w, uint64_t until) {
    uint64_t now;
    do {
        for (int i = 0; i < 4; i++) {
            long result = SYS_read;
            __asm__ volatile("syscall"
                             : "+a"(result)
                             : "D"((long)zero_fd), "S"(w->buffer), "d"((long)BUFFER_BYTES)
                             : "rcx", "r11", "memory");
            if (result < 0) abort(); /* a signal makes it short */
        }
        w->units[KERNEL]++;
        now = cpu_ns();
    } while (now < until);
    return now;
}

static uint64_t (*const functions[FUNCTIONS])(struct worker *, uint64_t) = {hot_sixty, hot_thirty, hot_ten, hot_kernel};

/* Whatever was missed, the next cycle begins when it is due. */
static void run_fixed_cycles(struct worker *w) {
    uint64_t end = now_ns(CLOCK_MONOTONIC);
    uint64_t now = cpu_ns();
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        for (int f = 0; f < FUNCTIONS; f++) {
            end += fixed_cycle_ns * w->weight[f] / 100;
            uint64_t wall = now_ns(CLOCK_MONOTONIC);
            if (end <= wall) continue;
            uint64_t begin = now;
            now = functions[f](w, begin + (end - wall));
            w->spent_ns[f] += now - begin;
        }
    }
}

__attribute__((noinline)) static void run_cycles(struct worker *w) {
    if (fixed_cycle_ns > 0) {
        run_fixed_cycles(w);
        return;
    }
    uint64_t random = 88172645463325252u + (uint64_t)w->tid;
    uint64_t due[FUNCTIONS] = {0};
    uint64_t now = cpu_ns();
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        /* Cycles differ in length so that they cannot keep step with a sampler. */
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint64_t cycle = CYCLE_NS / 2 + random % CYCLE_NS;
        for (int f = 0; f < FUNCTIONS; f++) {
            due[f] += cycle * w->weight[f] / 100;
            if (due[f] <= w->spent_ns[f]) continue;
            uint64_t begin = now;
            now = functions[f](w, begin + (due[f] - w->spent_ns[f]));
            w->spent_ns[f] += now - begin;
        }
    }
}

__attribute__((noinline)) static void descend(struct worker *w, uint64_t left) {
    if (left == 0) run_cycles(w);
    else descend(w, left - 1);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void *work(void *argument) {
    struct worker *w = argument;
    w->tid = (int)syscall(SYS_gettid);
    if (w->name[0]) prctl(PR_SET_NAME, w->name);
    else prctl(PR_GET_NAME, w->name);
    w->state = (uint64_t)w->tid;
    w->buffer = malloc(BUFFER_BYTES);
    if (!w->buffer) abort();
    memset(w->buffer, 1, BUFFER_BYTES);
    descend(w, w->depth);
    return NULL;
}

static void print_functions(const char *title, const uint64_t values[FUNCTIONS]) {
    printf("\"%s\":{", title);
    for (int f = 0; f < FUNCTIONS; f++) printf("%s\"%s\":%llu", f ? "," : "", NAMES[f], (unsigned long long)values[f]);
    printf("}");
}

static void on_signal(int signal) {
    (void)signal;
    atomic_store(&stopping, 1);
}

static void *stop_later(void *argument) {
    double seconds = *(double *)argument;
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
    atomic_store(&stopping, 1);
    return NULL;
}

static int run(int threads, double seconds, uint64_t kernel, uint64_t depth) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    static const uint64_t base[3] = {60, 30, 10};
    uint64_t started = now_ns(CLOCK_MONOTONIC);
    static double limit;
    limit = seconds;
    pthread_t timer;
    if (pthread_create(&timer, NULL, stop_later, &limit)) return 1;
    for (int t = 0; t < threads; t++) {
        struct worker *w = &workers[t];
        for (int f = 0; f < 3; f++) w->weight[f] = base[(f + 3 - t % 3) % 3] * (100 - kernel) / 100;
        w->weight[KERNEL] = kernel;
        w->depth = depth;
        if (threads > 1) snprintf(w->name, sizeof w->name, "hot-%d", t);
    }
    /* A single worker is the main thread, so that pid and tid are the same. */
    for (int t = 1; t < threads; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) return 1;
    work(&workers[0]);
    for (int t = 1; t < threads; t++) pthread_join(workers[t].thread, NULL);

    uint64_t spent[FUNCTIONS] = {0}, units[FUNCTIONS] = {0};
    for (int t = 0; t < threads; t++) {
        for (int f = 0; f < FUNCTIONS; f++) {
            spent[f] += workers[t].spent_ns[f];
            units[f] += workers[t].units[f];
        }
    }
    printf("{\"pid\":%d,\"wall_ns\":%llu,\"cpu_ns\":%llu,", (int)getpid(),
           (unsigned long long)(now_ns(CLOCK_MONOTONIC) - started),
           (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID));
    print_functions("functions", spent);
    printf(",");
    print_functions("units", units);
    printf(",\"threads\":[");
    for (int t = 0; t < threads; t++) {
        printf("%s{\"tid\":%d,\"name\":\"%s\",", t ? "," : "", workers[t].tid, workers[t].name);
        print_functions("functions", workers[t].spent_ns);
        printf("}");
    }
    printf("]}\n");
    return 0;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'}, {"threads", required_argument, NULL, 't'},
        {"kernel", required_argument, NULL, 'k'},  {"depth", required_argument, NULL, 'd'},
        {"fork-on-usr1", no_argument, NULL, 'f'},  {"cycle-us", required_argument, NULL, 'c'},
        {NULL, 0, NULL, 0}};
    double seconds = 3600;
    int threads = 1;
    int fork_on_usr1 = 0;
    uint64_t kernel = 0, depth = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 's': seconds = atof(optarg); break;
        case 't': threads = atoi(optarg); break;
        case 'k': kernel = (uint64_t)atoi(optarg); break;
        case 'd': depth = (uint64_t)atoi(optarg); break;
        case 'f': fork_on_usr1 = 1; break;
        case 'c': fixed_cycle_ns = (uint64_t)atoi(optarg) * 1000; break;
        default: return 2;
        }
    }
    if (threads < 1 || threads > MAX_THREADS || kernel > 100) return 2;
    zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (kernel > 0 && zero_fd < 0) return 1;
    if (fork_on_usr1) {
        sigset_t wanted;
        int signal_number;
        sigemptyset(&wanted);
        sigaddset(&wanted, SIGUSR1);
        sigprocmask(SIG_BLOCK, &wanted, NULL);
        printf("waiting\n");
        fflush(stdout);
        if (sigwait(&wanted, &signal_number)) return 1;
        pid_t child = fork();
        if (child < 0) return 1;
        if (child > 0) {
            int status;
            signal(SIGTERM, SIG_IGN);
            return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    return run(threads, seconds, kernel, depth);
}
