/*
 * contain DIR PROGRAM [ARG..]: runs a copy of PROGRAM as containers run theirs: in an own mount
 * namespace whose root is a tmpfs mounted on DIR, so that /app/NAME exists there and nowhere else.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC);
    check(in, from);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    check(out, to);
    ssize_t sent;
    while ((sent = sendfile(out, in, NULL, 1 << 20)) > 0) {}
    check((int)sent, "copy");
    check(close(out), "close");
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    char inside[256];
    snprintf(inside, sizeof inside, "/app/%s", basename(strdup(argv[2])));

    check(unshare(CLONE_NEWNS), "unshare");
    check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
    check(mount("none", argv[1], "tmpfs", 0, "mode=755,size=64m"), "mount tmpfs");
    char *program = realpath(argv[2], NULL);
    if (!program) check(-1, argv[2]);
    check(chdir(argv[1]), "chdir");
    check(mkdir("app", 0755), "mkdir app");
    check(mkdir("tmp", 0777), "mkdir tmp");
    check(mkdir("proc", 0755), "mkdir proc");
    check(mkdir("old", 0700), "mkdir old");
    copy(program, inside + 1); /* relative to the new root */
    check(mount("proc", "proc", "proc", 0, NULL), "mount proc");
    check((int)syscall(SYS_pivot_root, ".", "old"), "pivot_root");
    check(chdir("/"), "chdir");
    check(umount2("/old", MNT_DETACH), "umount");
    check(execv(inside, argv + 2), inside);
}
