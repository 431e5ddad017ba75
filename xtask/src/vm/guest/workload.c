/* One process whose time is spent in one function: at work, or with an argument asleep. */

#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void hot_function(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        sink += i * i;
}

__attribute__((noinline)) void nap_function(void)
{
    struct timespec time = {0, 5000000};
    nanosleep(&time, 0);
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
