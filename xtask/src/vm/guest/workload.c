/* One process whose time is spent in one function. */

static volatile unsigned long sink;

__attribute__((noinline)) void hot_function(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        sink += i * i;
}

int main(void)
{
    for (;;)
        hot_function();
}
