//! Which counters of the kernel side are losses.

use profiler_common::counter;
use profiler_model::LossKind;

/// Counters of the kernel side that are losses.
pub(super) const LOSS_COUNTERS: [(u32, LossKind); 16] = [
    (counter::COUNT_TABLE_FULL, LossKind::CountTableFull),
    (counter::RING_BUFFER_FULL, LossKind::RingBufferFull),
    (counter::STACK_TABLE_FULL, LossKind::StackTableFull),
    (
        counter::USER_STACK_UNREADABLE,
        LossKind::UserStackUnreadable,
    ),
    (
        counter::KERNEL_STACK_UNREADABLE,
        LossKind::KernelStackUnreadable,
    ),
    (counter::USER_STACK_TRUNCATED, LossKind::UserStackTruncated),
    (counter::PID_NOT_VISIBLE, LossKind::PidNotVisible),
    (
        counter::PROCESS_EVENT_DROPPED,
        LossKind::ProcessEventDropped,
    ),
    (counter::FILTER_FULL, LossKind::FilterFull),
    (counter::KERNEL_READ_FAILED, LossKind::KernelReadFailed),
    (counter::THREAD_TABLE_FULL, LossKind::ThreadTableFull),
    (counter::SWITCH_MISSED, LossKind::SwitchMissed),
    (counter::WAIT_TABLE_FULL, LossKind::WaitTableFull),
    (counter::LOOP_TABLE_FULL, LossKind::LoopTableFull),
    (counter::LOOP_RECORD_DROPPED, LossKind::LoopRecordDropped),
    (
        counter::KERNEL_STACK_TRUNCATED,
        LossKind::KernelStackTruncated,
    ),
];
