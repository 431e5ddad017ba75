/* One process whose time is spent in one function: at work, or with an argument asleep. */

#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void hot_function(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        sink += i * i;
}

/* The C library has no frame pointers: where nothing else is walked (before Linux 5.17), its caller is missing. */
__attribute__((noinline)) static void nap(void)
{
    struct timespec time = {0, 5000000};
    nanosleep(&time, 0);
    sink++;
}

__attribute__((noinline)) void nap_function(void)
{
    nap();
    sink++;
}

int main(int count, char **arguments)
{
    (void)arguments;
    for (;;)
        if (count > 1)
            nap_function();
        else
            hot_function();
}
