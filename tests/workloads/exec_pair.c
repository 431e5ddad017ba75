// One of two programs that exec each other, at the same addresses: static, not position-independent, and of
// the same source. "busy" burns CPU time, "idle" only sleeps. Which one it is stands in the last part of its
// own path. Usage: exec_pair OTHER_PROGRAM ROUNDS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef IDLE
#define WORK idle_function
#else
#define WORK busy_function
#endif

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// The same code at the same address in both programs; only the name differs.
__attribute__((noinline)) void WORK(double seconds) {
    volatile unsigned long sum = 0;
    for (double end = now() + seconds; now() < end;)
        for (unsigned long i = 0; i < 10000; i++) sum += i;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int rounds = atoi(arguments[2]);
    if (rounds == 0) return 0;
    char left[16];
    snprintf(left, sizeof left, "%d", rounds - 1);
#ifdef IDLE
    WORK(0);
    usleep(60 * 1000);
#else
    WORK(0.06);
#endif
    // The program that is started now is named by us, and it is told to come back to us.
    execl(arguments[1], arguments[1], arguments[0], left, (char *)0);
    perror("exec");
    return 1;
}
