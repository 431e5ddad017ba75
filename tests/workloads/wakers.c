/*
 * A thread that waits, and one that ends its waits in a known way. Prints "ready", begins with
 * SIGUSR1, prints "done" and waits to be stopped.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200

static void pause_for(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

static _Atomic uint32_t turn;

__attribute__((noinline)) static void take_turn(uint32_t mine)
{
    while (atomic_load(&turn) == mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, mine, NULL, NULL, 0);
    __asm__ volatile("");
}

__attribute__((noinline)) static void give_turn(void)
{
    atomic_fetch_add(&turn, 1);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    __asm__ volatile("");
}

static void *taker(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "taker");
    for (uint32_t i = 0; i < ROUNDS; i++)
        take_turn(i);
    return NULL;
}

static void *giver(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "giver");
    for (int i = 0; i < ROUNDS; i++) {
        pause_for(2000000);
        give_turn();
    }
    return NULL;
}

__attribute__((noinline)) static void read_byte(int from)
{
    char byte;
    if (read(from, &byte, 1) != 1)
        abort();
    __asm__ volatile("");
}

__attribute__((noinline)) static void write_byte(int to)
{
    char byte = 0;
    if (write(to, &byte, 1) != 1)
        abort();
    __asm__ volatile("");
}

/* A child that writes to what the parent reads. */
static void converse(int from, int to)
{
    if (fork() == 0) {
        prctl(PR_SET_NAME, "writer");
        for (int i = 0; i < ROUNDS; i++) {
            pause_for(2000000);
            write_byte(to);
        }
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++)
        read_byte(from);
    wait(NULL);
}

static void connect_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        abort();
    pair[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[1], (struct sockaddr *)&address, length) != 0)
        abort();
    setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pair[0] = accept(listener, NULL, NULL);
}

__attribute__((noinline)) static void nap(void)
{
    pause_for(2000000);
    __asm__ volatile("");
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    sigset_t begin;
    int signal, pair[2];
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);
    puts("ready");
    fflush(stdout);
    sigwait(&begin, &signal);
    if (strcmp(mode, "futex") == 0) {
        pthread_t threads[2];
        pthread_create(&threads[0], NULL, taker, NULL);
        pthread_create(&threads[1], NULL, giver, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    } else if (strcmp(mode, "pipe") == 0) {
        if (pipe(pair) != 0)
            abort();
        converse(pair[0], pair[1]);
    } else if (strcmp(mode, "socket") == 0) {
        connect_pair(pair);
        converse(pair[0], pair[1]);
    } else {
        for (int i = 0; i < ROUNDS; i++)
            nap();
    }
    puts("done");
    fflush(stdout);
    for (;;)
        pause();
}
