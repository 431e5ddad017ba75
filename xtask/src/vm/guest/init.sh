#!/bin/busybox sh
# Init of a test machine. Results go to the second serial port, in sections that vm/transcript.rs reads;
# messages of the kernel and errors go to the first.

/bin/busybox mkdir -p /usr/bin /sbin
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
hostname machine

results=/dev/ttyS1
stty -F $results raw -echo
exec 2>/dev/console

section() {
    name=$1
    shift
    "$@" >/tmp/output 2>/tmp/errors
    status=$?
    [ $status = 0 ] || cat /tmp/errors >>/tmp/output
    {
        echo "@@@ begin $name"
        cat /tmp/output
        # A last line without its end must not swallow the marker.
        echo
        echo "@@@ end $name $status"
    } >$results
}

section kernel uname -r
section btf test -r /sys/kernel/btf/vmlinux
section doctor profiler-agent doctor --json

workload &
section record profiler-agent record --comm workload --duration 10s --frequency 99 --format folded --output -
kill $!

workload nap &
section waits profiler-agent record --kind off-cpu --value count --pid $! --duration 3s --format folded --output -
section walks sh -c 'profiler-agent record --kind off-cpu --all --off-cpu-mode every --verify-unwinding 1000000 --duration 2s --format folded --output /tmp/walks 2>&1'
kill $!

# Of the kernel's command line.
if [ "$tries" = everything ]; then
    ip link set lo up
    for module in inet_diag tcp_diag unix_diag; do
        file=/etc/modules/$module.ko
        [ -e $file ] || unxz $file.xz
        insmod $file
    done
    export PROFILER_AGENT=/bin/profiler-agent
    section connections integration-tests --exact --test-threads 1 $(cat /etc/tests)
fi

sync
poweroff -f
