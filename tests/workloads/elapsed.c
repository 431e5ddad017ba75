/*
 * Threads that run, sleep, starve, begin and exit, each of which knows how much time passed for it
 * and how much of it was CPU time. Prints "ready", begins with SIGUSR1, prints a report as one line
 * of JSON when all threads have exited, and waits to be stopped.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 64
#define LIFE_NS 2000000000L
#define BRIEF_NS 400000000L
#define BRIEF_THREADS 4

static long clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

struct thread {
    char name[16];
    void (*live)(long end);
    long life_ns;
    long tid, wall_ns, cpu_ns;
    pthread_t handle;
};

static void spin_until(long end)
{
    while (clock_ns(CLOCK_MONOTONIC) < end)
        for (volatile int i = 0; i < 1000; i++)
            ;
}

static void sleep_for(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

__attribute__((noinline)) static void running(long end)
{
    spin_until(end);
    __asm__ volatile("");
}

__attribute__((noinline)) static void sleeping(long end)
{
    while (clock_ns(CLOCK_MONOTONIC) < end)
        sleep_for(20000000);
}

/* Slices much shorter than the period of the clock. */
__attribute__((noinline)) static void taking_turns(long end)
{
    while (clock_ns(CLOCK_MONOTONIC) < end) {
        spin_until(clock_ns(CLOCK_MONOTONIC) + 1000000);
        sleep_for(1000000);
    }
}

static void *live(void *argument)
{
    struct thread *thread = argument;
    long wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    prctl(PR_SET_NAME, thread->name);
    thread->tid = syscall(SYS_gettid);
    thread->live(wall + thread->life_ns);
    thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    thread->wall_ns = clock_ns(CLOCK_MONOTONIC) - wall;
    return NULL;
}

static struct thread threads[MOST_THREADS];
static int known;

static struct thread *start(const char *name, void (*how)(long), long life_ns)
{
    struct thread *thread = &threads[known++];
    snprintf(thread->name, sizeof thread->name, "%s", name);
    thread->live = how;
    thread->life_ns = life_ns;
    if (pthread_create(&thread->handle, NULL, live, thread) != 0)
        abort();
    return thread;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    sigset_t begin;
    int signal;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);
    if (strcmp(mode, "busy") == 0)
        start("running", running, 1000 * LIFE_NS);
    puts("ready");
    fflush(stdout);
    sigwait(&begin, &signal);
    if (strcmp(mode, "mixed") == 0) {
        start("running", running, LIFE_NS);
        start("sleeping", sleeping, LIFE_NS);
        start("taking-turns", taking_turns, LIFE_NS);
    } else if (strcmp(mode, "starved") == 0) {
        long busy = 2 * sysconf(_SC_NPROCESSORS_ONLN);
        for (long i = 0; i < busy && i < MOST_THREADS; i++)
            start("starved", running, LIFE_NS);
    } else if (strcmp(mode, "brief") == 0) {
        for (int i = 0; i < BRIEF_THREADS; i++)
            pthread_join(start("brief", running, BRIEF_NS)->handle, NULL);
    }
    for (int i = 0; i < known && strcmp(mode, "brief") != 0; i++)
        pthread_join(threads[i].handle, NULL);
    printf("[");
    for (int i = 0; i < known; i++)
        printf("%s{\"tid\":%ld,\"name\":\"%s\",\"wall_ns\":%ld,\"cpu_ns\":%ld}", i ? "," : "",
               threads[i].tid, threads[i].name, threads[i].wall_ns, threads[i].cpu_ns);
    puts("]");
    fflush(stdout);
    for (;;)
        pause();
}
