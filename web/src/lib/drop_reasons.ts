// Which of the kernel's reasons to drop a packet say that data is missing (include/net/dropreason-core.h).

/**
 * Duplicates: their bytes or acknowledgements had arrived already, or came with an older timestamp than those that
 * had (PAWS). Nothing is sent again because of them.
 */
const DUPLICATES: ReadonlySet<string> = new Set([
  "tcp_old_data",
  "tcp_old_sequence",
  "tcp_ofomerge",
  "tcp_old_ack",
  "tcp_too_old_ack",
  "tcp_rfc7323_paws",
  "tcp_rfc7323_paws_ack",
]);

/** Packets that were dropped and are missing. Those without a reason count. */
export function lostPackets(dropped: number, byReason: Readonly<Record<string, number>>): number {
  const duplicates = Object.entries(byReason).filter(([reason]) => DUPLICATES.has(reason.toLowerCase()));
  return Math.max(0, dropped - duplicates.reduce((sum, [, number]) => sum + number, 0));
}
