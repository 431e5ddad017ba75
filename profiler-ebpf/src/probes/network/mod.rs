//! Connections: what TCP and Unix sockets of the targets do, counted in the kernel by socket.
//!
//! Hooks (kernel with BTF; each is attached on its own and may be missing):
//! - `inet_sock_set_state(const struct sock *sk, int oldstate, int newstate)`, some per connection
//! - `sock_send_length`, `sock_recv_length(struct sock *sk, int ret, int flags)`, since 6.3, one per
//!   read and write of any socket
//! - `sk_data_ready(const struct sock *sk)`, since 6.3, about one per received segment
//! - `tcp_retransmit_skb(const struct sock *sk, const struct sk_buff *skb, ..)`
//! - `kfree_skb(struct sk_buff *skb, void *location, ..)`: reason since 5.17, socket since 6.11
//! - `tcp_send_reset(const struct sock *sk, ..)`, `tcp_receive_reset(struct sock *sk)`
//! - `inet_sk_error_report(const struct sock *sk)`, since 5.14
//! - `tcp_destroy_sock(struct sock *sk)`, one per connection
//! - `sys_enter`, `sys_exit` and `tcp_probe`, only where they are needed: see `calls` and `segments`
//!
//! Many of these run in softirqs, above whatever task was interrupted: a process is taken from the
//! running task only where a socket call of that task is what runs. Elsewhere a connection is known
//! by its entry in the table, or by the port that a wanted process listens on.

mod calls;
mod connection;
mod descriptor;
mod eviction;
mod http;
mod http2;
mod lifecycle;
mod segments;
mod names;
mod payload;
mod payload_bytes;
mod payload_calls;
mod payload_datagrams;
mod payload_unix;
mod socket;
mod tls;
mod tls_calls;
mod tls_memory;
mod tls_rustls;
mod tls_sessions;
mod traffic;
mod trouble;
mod unix;
