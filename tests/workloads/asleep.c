/*
 * Threads that sleep in known ways before anybody looks. Prints "ready" when all do.
 *
 *   deadlock   two threads hold a mutex each and wait for the other's
 *   nap N      a thread sleeps for N milliseconds after SIGUSR1, says that it does, and prints how
 *              long it was away from then on
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;

__attribute__((noinline)) static void take_second(long mine)
{
    pthread_mutex_lock(&locks[1 - mine]);
    __asm__ volatile("");
}

__attribute__((noinline)) static void take_first(long mine)
{
    pthread_mutex_lock(&locks[mine]);
    pthread_barrier_wait(&both);
    take_second(mine);
    __asm__ volatile("");
}

static void *embrace(void *number)
{
    prctl(PR_SET_NAME, number == NULL ? "left" : "right");
    take_first((long)number);
    return NULL;
}

__attribute__((noinline)) static void nap_long(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    __asm__ volatile("");
}

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *nap(void *ms)
{
    prctl(PR_SET_NAME, "nap");
    puts("napping");
    fflush(stdout);
    nap_long((long)ms);
    printf("%ld\n", now_ns());
    fflush(stdout);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count > 1 && strcmp(arguments[1], "deadlock") == 0) {
        pthread_barrier_init(&both, NULL, 2);
        for (long number = 0; number < 2; number++)
            pthread_create(&thread, NULL, embrace, (void *)number);
    } else if (count > 2 && strcmp(arguments[1], "nap") == 0) {
        pthread_create(&thread, NULL, nap, (void *)atol(arguments[2]));
    } else {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
