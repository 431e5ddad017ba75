/*
 * hostile TRAP SECRET HOST_PID: runs code that only a perf-map (first region) or a mapped file (second
 * region) could name, after replacing both by a trap for whoever reads them. SECRET is a file of
 * the host that links point to, HOST_PID a process of the host. Meant to be run by `contain`.
 *
 * TRAP: none (a proper perf-map), symlink, magic-link, fifo, device, sparse, foreign-owner.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const size_t PAGE = 4096;

/* push rbp; mov rbp,rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const unsigned char SPIN[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

typedef void (*spin)(uint64_t);

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void *mapped(void *address) {
    if (address == MAP_FAILED) check(-1, "mmap");
    return address;
}

static void write_file(const char *path, const void *bytes, size_t length) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    check(file, path);
    if (write(file, bytes, length) != (ssize_t)length) check(-1, "write");
    check(close(file), "close");
}

/* Puts the trap at `path`; `proper` is what an honest file would hold. */
static void set_trap(const char *trap, const char *path, const char *secret, const char *host_pid,
                     const void *proper, size_t length) {
    char link[4096];
    if (!strcmp(trap, "none")) {
        write_file(path, proper, length);
    } else if (!strcmp(trap, "symlink")) {
        check(symlink(secret, path), "symlink");
    } else if (!strcmp(trap, "magic-link")) {
        snprintf(link, sizeof link, "/proc/%s/root%s", host_pid, secret);
        check(symlink(link, path), "symlink");
        int reachable = open(path, O_RDONLY | O_CLOEXEC);
        check(reachable, "the link must lead to the host's file");
        close(reachable);
    } else if (!strcmp(trap, "fifo")) {
        check(mkfifo(path, 0644), "mkfifo");
    } else if (!strcmp(trap, "device")) {
        check(mknod(path, S_IFCHR | 0644, makedev(1, 5)), "mknod");
    } else if (!strcmp(trap, "sparse")) {
        write_file(path, proper, length);
        check(truncate(path, (off_t)1 << 40), "truncate");
    } else if (!strcmp(trap, "foreign-owner")) {
        write_file(path, proper, length);
        check(chown(path, 4242, 4242), "chown");
    } else {
        exit(2);
    }
}

__attribute__((noinline)) static void call_jit(spin code) {
    code(200000);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void call_file(spin code) {
    code(200001); /* differs, or the compiler folds the two */
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    char *jit = mapped(mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(jit, SPIN, sizeof SPIN);
    char path[64], map[128];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int length = snprintf(map, sizeof map, "%llx %zx jit_spin\n", (unsigned long long)(uintptr_t)jit, PAGE);
    set_trap(argv[1], path, argv[2], argv[3], map, (size_t)length);

    char page[4096] = {0};
    memcpy(page, SPIN, sizeof SPIN);
    check(mkdir("/lib", 0755), "mkdir");
    write_file("/lib/code.bin", page, sizeof page);
    int file = open("/lib/code.bin", O_RDONLY | O_CLOEXEC);
    check(file, "open");
    char *code = mapped(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
    close(file);
    /* The mapping keeps its file; its path now leads to the trap. */
    check(mount("none", "/lib", "tmpfs", 0, "mode=755"), "mount tmpfs");
    set_trap(argv[1], "/lib/code.bin", argv[2], argv[3], page, sizeof page);

    printf("ready\n");
    fflush(stdout);
    for (;;) {
        call_jit((spin)jit);
        call_file((spin)code);
        /* Several of us run at once; each takes a tenth of a CPU or so. */
        usleep(1500);
    }
}
