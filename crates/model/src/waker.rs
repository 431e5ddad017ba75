//! What ended a wait, from the functions that ran when it was ended.
//!
//! The thread that runs when an interrupt comes has nothing to do with what the interrupt wakes, so
//! the kernel stack decides: with an interrupt's entry on it, only the frames above count.

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WokenBy {
    /// The thread that ran.
    Thread,
    /// An interrupt; its frames are those up to and with this one, from the leaf.
    Interrupt { source: Interrupt, last: usize },
    /// Nothing is known of the kernel's functions, so it may have been either.
    Unknown,
}

/// What interrupts are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interrupt {
    Timer,
    Network,
    Block,
    Other,
}

impl Interrupt {
    /// Name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Network => "network",
            Self::Block => "block",
            Self::Other => "other",
        }
    }
}

/// Beginnings of functions by which the processor or the kernel enters an interrupt.
const HARD: [&str; 14] = [
    "asm_sysvec_",
    "sysvec_",
    "__sysvec_",
    "asm_common_interrupt",
    "common_interrupt",
    "__common_interrupt",
    "fred_extint",
    "fred_sysvec",
    "asm_exc_nmi",
    "handle_irq_event",
    "__handle_irq_event",
    "hrtimer_interrupt",
    "el1h_64_irq",
    "el0t_64_irq",
];

/// The same of softirqs, which run at the end of an interrupt or where a thread allows them again.
const SOFT: [&str; 4] = [
    "__do_softirq",
    "handle_softirqs",
    "do_softirq",
    "__irq_exit_rcu",
];

/// Functions of threads that handle interrupts: they are named as what they are.
const THREADS: [&str; 3] = ["run_ksoftirqd", "irq_thread", "irq_forced_thread_fn"];

/// Beginnings of functions that say what an interrupt is for. The one nearest to the leaf decides.
const SOURCES: [(&str, Interrupt); 32] = [
    ("net_rx_action", Interrupt::Network),
    ("net_tx_action", Interrupt::Network),
    ("__napi_poll", Interrupt::Network),
    ("napi_", Interrupt::Network),
    ("process_backlog", Interrupt::Network),
    ("__netif_receive_skb", Interrupt::Network),
    ("netif_", Interrupt::Network),
    ("ip_rcv", Interrupt::Network),
    ("ip_local_deliver", Interrupt::Network),
    ("ipv6_rcv", Interrupt::Network),
    ("tcp_", Interrupt::Network),
    ("udp_", Interrupt::Network),
    ("__udp", Interrupt::Network),
    ("sock_def_", Interrupt::Network),
    ("sk_stream_write_space", Interrupt::Network),
    ("virtnet_", Interrupt::Network),
    ("blk_", Interrupt::Block),
    ("__blk_", Interrupt::Block),
    ("bio_endio", Interrupt::Block),
    ("end_bio_", Interrupt::Block),
    ("virtblk_", Interrupt::Block),
    ("nvme_", Interrupt::Block),
    ("scsi_", Interrupt::Block),
    ("ata_", Interrupt::Block),
    ("hrtimer_", Interrupt::Timer),
    ("__hrtimer_", Interrupt::Timer),
    ("run_timer_softirq", Interrupt::Timer),
    ("call_timer_fn", Interrupt::Timer),
    ("process_timeout", Interrupt::Timer),
    ("delayed_work_timer_fn", Interrupt::Timer),
    ("posix_timer_fn", Interrupt::Timer),
    ("it_real_fn", Interrupt::Timer),
];

/// What woke, by the names of the kernel functions on the waker's stack, from the leaf on; a
/// function without a name is empty.
pub fn woken_by(kernel: &[&str]) -> WokenBy {
    if kernel.iter().all(|name| name.is_empty()) {
        return WokenBy::Unknown;
    }
    let begins = |name: &&str, with: &[&str]| with.iter().any(|start| name.starts_with(start));
    // A thread that handles interrupts may itself be interrupted: frames below it do not count.
    let thread = kernel.iter().position(|name| begins(name, &THREADS));
    let hard = kernel
        .iter()
        .take(thread.unwrap_or(kernel.len()))
        .rposition_of(|name| begins(name, &HARD));
    let soft = if thread.is_some() {
        None
    } else {
        kernel.iter().rposition_of(|name| begins(name, &SOFT))
    };
    let Some(last) = hard.max(soft) else {
        return WokenBy::Thread;
    };
    let source = kernel
        .iter()
        .take(last + 1)
        .find_map(|name| {
            let found = SOURCES.iter().find(|(start, _)| name.starts_with(start));
            found.map(|(_, source)| *source)
        })
        .unwrap_or(Interrupt::Other);
    WokenBy::Interrupt { source, last }
}

/// The last position of what is looked for, in an iterator that may be cut.
trait LastPosition: Iterator + Sized {
    fn rposition_of(self, wanted: impl Fn(Self::Item) -> bool) -> Option<usize> {
        let found = self
            .enumerate()
            .filter_map(|(at, item)| wanted(item).then_some(at));
        found.last()
    }
}

impl<I: Iterator> LastPosition for I {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: &[&str], expected: WokenBy) {
        assert_eq!(woken_by(kernel), expected, "{kernel:?}");
    }

    fn interrupt(source: Interrupt, last: usize) -> WokenBy {
        WokenBy::Interrupt { source, last }
    }

    #[test]
    fn a_thread_wakes_where_no_interrupt_is_on_its_stack() {
        check(
            &[
                "try_to_wake_up",
                "wake_up_q",
                "futex_wake",
                "do_futex",
                "do_syscall_64",
            ],
            WokenBy::Thread,
        );
        check(
            &[
                "try_to_wake_up",
                "handle_mm_fault",
                "exc_page_fault",
                "asm_exc_page_fault",
            ],
            WokenBy::Thread,
        );
    }

    #[test]
    fn an_interrupted_thread_is_innocent() {
        check(
            &[
                "try_to_wake_up",
                "hrtimer_wakeup",
                "__hrtimer_run_queues",
                "hrtimer_interrupt",
                "__sysvec_apic_timer_interrupt",
                "sysvec_apic_timer_interrupt",
                "asm_sysvec_apic_timer_interrupt",
                "vfs_read",
            ],
            interrupt(Interrupt::Timer, 6),
        );
        check(
            &[
                "try_to_wake_up",
                "blk_mq_end_request",
                "virtblk_done",
                "vring_interrupt",
                "__handle_irq_event_percpu",
                "common_interrupt",
                "asm_common_interrupt",
            ],
            interrupt(Interrupt::Block, 6),
        );
    }

    #[test]
    fn a_softirq_in_the_senders_context_is_the_networks() {
        check(
            &[
                "try_to_wake_up",
                "sock_def_readable",
                "tcp_data_queue",
                "__napi_poll",
                "net_rx_action",
                "handle_softirqs",
                "do_softirq.part.0",
                "__local_bh_enable_ip",
                "tcp_sendmsg",
                "do_syscall_64",
            ],
            interrupt(Interrupt::Network, 6),
        );
    }

    #[test]
    fn threads_that_handle_interrupts_are_threads() {
        let softirq = [
            "try_to_wake_up",
            "net_rx_action",
            "handle_softirqs",
            "run_ksoftirqd",
        ];
        check(&softirq, WokenBy::Thread);
        let interrupted = [
            "try_to_wake_up",
            "hrtimer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
        ];
        check(
            &[&interrupted[..], &softirq[1..]].concat(),
            interrupt(Interrupt::Timer, 2),
        );
    }

    #[test]
    fn without_names_nobody_is_accused() {
        check(&[], WokenBy::Unknown);
        check(&["", ""], WokenBy::Unknown);
    }
}
