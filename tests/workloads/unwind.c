// Programs whose stacks are known: built without frame pointers, each way of calling that an
// unwinder has to follow. Burns CPU until it is killed. Argument: what to do.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t sink;

// Keeps a call from becoming a jump, and gives each function a frame of its own size.
#define FRAME(bytes)                                                                               \
    volatile char room[bytes];                                                                     \
    room[0] = 1

NOINLINE void leaf_burns(uint64_t rounds) {
    uint64_t value = sink;
    for (uint64_t round = 0; round < rounds; round++) {
        value = value * 6364136223846793005ULL + 1442695040888963407ULL;
        __asm__ volatile("" : "+r"(value));
    }
    sink = value;
}

NOINLINE void chain_five(void) { FRAME(24); leaf_burns(100000); sink += room[0]; }
NOINLINE void chain_four(void) { FRAME(200); chain_five(); sink += room[0]; }
NOINLINE void chain_three(void) { FRAME(4096); chain_four(); sink += room[0]; }
NOINLINE void chain_two(size_t bytes) {
    // A frame whose size is not known when compiled: it has a frame pointer of its own.
    volatile char *room = __builtin_alloca(bytes);
    room[0] = 1;
    chain_three();
    sink += room[0];
}
NOINLINE void chain_one(void) { FRAME(8); chain_two(sink % 64 + 32); sink += room[0]; }

static void deep(void) {
    for (;;) chain_one();
}

// The handler runs for nearly the whole period of the timer.
NOINLINE void work_in_handler(void) { FRAME(64); leaf_burns(1500000); sink += room[0]; }
NOINLINE void alarm_handler(int number) { FRAME(32); work_in_handler(); sink += number + room[0]; }
NOINLINE void interrupted_leaf(void) { leaf_burns(1000); }
NOINLINE void interrupted_function(void) {
    FRAME(128);
    for (;;) {
        interrupted_leaf();
        sink += room[0];
    }
}

static void with_signals(int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = alarm_handler;
    action.sa_flags = flags | SA_RESTART;
    if (flags & SA_ONSTACK) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        sigaltstack(&stack, NULL);
    }
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 4000}, {0, 4000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    interrupted_function();
}

NOINLINE void recurse(unsigned depth) {
    FRAME(16);
    if (depth == 0) {
        leaf_burns(1000000);
    } else {
        recurse(depth - 1);
    }
    sink += room[0];
}
NOINLINE void recursion_root(unsigned depth) { FRAME(48); recurse(depth); sink += room[0]; }

NOINLINE void asks_the_clock(void) {
    FRAME(16);
    struct timespec now;
    for (int round = 0; round < 1000; round++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += now.tv_nsec;
    }
    sink += room[0];
}

NOINLINE void calls_the_library(void) {
    FRAME(16);
    char text[64];
    for (int round = 0; round < 1000; round++) {
        memset(text, 'a' + round % 26, sizeof text);
        sink += (uint64_t)strtol("12345", NULL, 10) + (uint64_t)abs((int)sink) + (uint64_t)text[3];
    }
    sink += room[0];
}

NOINLINE void in_thread(void) { FRAME(16); leaf_burns(100000); sink += room[0]; }
static void *thread_begins(void *nothing) {
    for (;;) in_thread();
    return nothing;
}

// The library calls back: from within a sort, from within the output to a stream, at the exit.
NOINLINE int compares(const void *one, const void *other) {
    FRAME(16);
    leaf_burns(20000);
    sink += room[0];
    return *(const int *)one - *(const int *)other;
}
NOINLINE void sorts(void) {
    FRAME(16);
    int numbers[64];
    for (int at = 0; at < 64; at++) numbers[at] = (at * 37) % 64;
    qsort(numbers, 64, sizeof numbers[0], compares);
    sink += room[0];
}

NOINLINE ssize_t writes_to_cookie(void *cookie, const char *text, size_t bytes) {
    FRAME(32);
    (void)cookie;
    sink += bytes > 0 ? text[0] : 0;
    leaf_burns(200000);
    sink += room[0];
    return bytes;
}
NOINLINE void prints(FILE *stream) {
    FRAME(16);
    fprintf(stream, "%d %s %.3f\n", (int)sink, "text", 1.5);
    fflush(stream);
    sink += room[0];
}

NOINLINE void runs_at_exit(void) {
    FRAME(16);
    for (;;) {
        leaf_burns(100000);
        sink += room[0];
    }
}

// Children that burn for a moment one after the other and stay, more than a task has room for; then
// one that goes on. Begins with SIGUSR1.
#define CROWD 270
static void crowd(void) {
    sigset_t begin;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);
    puts("waits");
    fflush(stdout);
    int number;
    sigwait(&begin, &number);
    for (int nth = 0; nth <= CROWD; nth++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            clock_t end = clock() + CLOCKS_PER_SEC / 100;
            while (nth == CROWD || clock() < end) chain_one();
            raise(SIGSTOP);
        }
        if (nth == CROWD) {
            printf("late %d\n", child);
            fflush(stdout);
        }
        waitpid(child, NULL, WUNTRACED);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "deep";
    puts("ready");
    fflush(stdout);
    if (strcmp(what, "deep") == 0) {
        deep();
    } else if (strcmp(what, "signal") == 0) {
        with_signals(0);
    } else if (strcmp(what, "altstack") == 0) {
        with_signals(SA_ONSTACK);
    } else if (strcmp(what, "recursion") == 0) {
        for (;;) recursion_root(3000);
    } else if (strcmp(what, "clock") == 0) {
        for (;;) asks_the_clock();
    } else if (strcmp(what, "library") == 0) {
        for (;;) calls_the_library();
    } else if (strcmp(what, "sort") == 0) {
        for (;;) sorts();
    } else if (strcmp(what, "print") == 0) {
        cookie_io_functions_t functions = {.write = writes_to_cookie};
        FILE *stream = fopencookie(NULL, "w", functions);
        for (;;) prints(stream);
    } else if (strcmp(what, "exit") == 0) {
        atexit(runs_at_exit);
        return 0;
    } else if (strcmp(what, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, thread_begins, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(what, "crowd") == 0) {
        crowd();
    }
    return 1;
}
