//! Where sockets keep what the network programs read, from the running kernel's BTF.

use std::collections::BTreeMap;

use btf_rs::{Btf, Type};
use profiler_common::{
    network::{
        DROP_UNKNOWN, DROP_WITH_REASON, DROP_WITH_SOCKET, DROP_WITHOUT_REASON, NO_SUCH_REASON,
        NetworkConfig,
    },
    network_calls::NetworkCallConfig,
    payload::PayloadConfig,
    tls::TlsConfig,
};
use profiler_model::DEFAULT_CAPTURE_BYTES;

use super::{
    call_plan::CallPlan,
    network_calls,
    offsets::{OffsetError, kernel_btf, member_offset, tracepoint_parameters, types_named},
    payload,
    programs::{ProgramRow, network_programs},
    sizes::Counting,
    tls,
};

/// Inode of a namespace that does not exist.
pub(super) const CHECK_NAMESPACE: u32 = 1;

/// What the network programs need to know of this kernel.
#[derive(Debug)]
pub(super) struct NetworkFacts {
    pub(super) config: NetworkConfig,
    pub(super) calls: NetworkCallConfig,
    pub(super) payload: PayloadConfig,
    pub(super) tls: TlsConfig,
    /// What system calls are watched for.
    pub(super) plan: CallPlan,
    /// Tracepoints that this kernel does not have.
    pub(super) missing_hooks: Vec<&'static str>,
}

/// What a task wants of the network programs.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    Task {
        /// Inode of the only network namespace that is watched; 0: all.
        network_namespace: u32,
        /// Whether system calls are timed.
        timed: bool,
        /// First bytes of each piece of payload that are captured; `None`: there is no payload.
        capture_bytes: Option<u32>,
        tls_bytes: Option<u32>,
        /// Names of programs that must not be used.
        denied: &'a [String],
    },
    /// Every program with its widest path.
    Check,
}

/// What is needed for an object that counts this; `None` when it watches no connections.
pub(super) fn wanted(
    counting: Counting,
    denied: &[String],
) -> Result<Option<NetworkFacts>, OffsetError> {
    match counting {
        Counting::Connections {
            network_namespace,
            timed,
            capture_bytes,
            tls_bytes,
            entries: _,
        } => resolve(Wanted::Task {
            network_namespace,
            timed,
            capture_bytes,
            tls_bytes,
            denied,
        })
        .map(Some),
        Counting::Everything(_) => resolve(Wanted::Check).map(Some),
        Counting::Nothing | Counting::Samples(_) | Counting::Waits | Counting::Wall => Ok(None),
    }
}

/// Resolves every offset.
fn resolve(wanted: Wanted<'_>) -> Result<NetworkFacts, OffsetError> {
    let btf = kernel_btf()?;
    let missing_hooks: Vec<&str> = network_programs()
        .filter_map(|program| program.hook.target())
        .filter(|hook| tracepoint_parameters(&btf, &format!("btf_trace_{hook}")).is_none())
        .collect();
    let (network_namespace, plan, capture_bytes, tls_bytes) = match wanted {
        Wanted::Check => (
            CHECK_NAMESPACE,
            CallPlan::EVERYTHING,
            Some(DEFAULT_CAPTURE_BYTES),
            Some(DEFAULT_CAPTURE_BYTES),
        ),
        Wanted::Task {
            network_namespace,
            timed,
            capture_bytes,
            tls_bytes,
            denied,
        } => {
            let is_usable = |name: &str| {
                let is_there = |program: &ProgramRow| {
                    let hook = program.hook.target();
                    hook.is_some_and(|hook| !missing_hooks.contains(&hook))
                };
                network_programs().any(|program| program.name == name && is_there(program))
                    && !denied.iter().any(|denied| denied == name)
            };
            let plan = CallPlan::new(timed, is_usable);
            (network_namespace, plan, capture_bytes, tls_bytes)
        }
    };
    Ok(NetworkFacts {
        config: offsets(&btf, network_namespace)?,
        calls: network_calls::config(&btf, plan)?,
        payload: payload::config(&btf, capture_bytes)?,
        tls: tls::config(tls_bytes),
        plan,
        missing_hooks,
    })
}

fn offsets(btf: &Btf, network_namespace: u32) -> Result<NetworkConfig, OffsetError> {
    let at = |structure, path: &[&'static str]| member_offset(btf, structure, path);
    let common = |member| at("sock", &["__sk_common", member]);
    Ok(NetworkConfig {
        network_namespace,
        drop_arguments: drop_arguments(btf),
        sock_family: common("skc_family")?,
        sock_num: common("skc_num")?,
        sock_dport: common("skc_dport")?,
        sock_daddr: common("skc_daddr")?,
        sock_rcv_saddr: common("skc_rcv_saddr")?,
        sock_v6_daddr: common("skc_v6_daddr")?,
        sock_v6_rcv_saddr: common("skc_v6_rcv_saddr")?,
        // A pointer is the only member of its type.
        sock_net: common("skc_net")?,
        sock_cookie: common("skc_cookie")?,
        sock_protocol: at("sock", &["sk_protocol"])?,
        sock_err: at("sock", &["sk_err"])?,
        net_inum: at("net", &["ns", "inum"])?,
        tcp_srtt_us: at("tcp_sock", &["srtt_us"])?,
        // `struct minmax` is an array of samples, the smallest first (include/linux/win_minmax.h).
        tcp_rtt_min: at("tcp_sock", &["rtt_min"])?
            + at("minmax", &["s"])?
            + at("minmax_sample", &["v"])?,
        tcp_bytes_sent: at("tcp_sock", &["bytes_sent"])?,
        tcp_bytes_retrans: at("tcp_sock", &["bytes_retrans"])?,
        tcp_bytes_received: at("tcp_sock", &["bytes_received"])?,
        tcp_total_retrans: at("tcp_sock", &["total_retrans"])?,
        tcp_rcv_nxt: at("tcp_sock", &["rcv_nxt"])?,
        tcp_copied_seq: at("tcp_sock", &["copied_seq"])?,
        tcp_clock_cache: at("tcp_sock", &["tcp_clock_cache"])?,
        skb_sk: at("sk_buff", &["sk"])?,
        sock_receive_queue: at("sock", &["sk_receive_queue"])?,
        skb_data: at("sk_buff", &["data"])?,
        skb_len: at("sk_buff", &["len"])?,
        skb_data_len: at("sk_buff", &["data_len"])?,
        skb_head: at("sk_buff", &["head"])?,
        skb_transport_header: at("sk_buff", &["transport_header"])?,
        drop_not_specified: reasons_of(btf)
            .into_iter()
            .find(|(_, name)| name == "not_specified")
            .map_or(NO_SUCH_REASON, |(reason, _)| reason),
        task_comm: at("task_struct", &["comm"])?,
        // Kernels may be built without it.
        mptcp_first: at("mptcp_sock", &["first"]).unwrap_or(0),
    })
}

/// How `kfree_skb` is called on this kernel.
fn drop_arguments(btf: &Btf) -> u32 {
    let Some(parameters) = tracepoint_parameters(btf, "btf_trace_kfree_skb") else {
        return DROP_UNKNOWN;
    };
    // The first is the tracepoint's own.
    match parameters.len() {
        3 => DROP_WITHOUT_REASON,
        4 => DROP_WITH_REASON,
        5 => DROP_WITH_SOCKET,
        _ => DROP_UNKNOWN,
    }
}

/// The kernel's names of reasons to drop a packet, in lower case without their prefix.
pub fn drop_reasons() -> BTreeMap<u32, String> {
    kernel_btf().map_or_else(|_| BTreeMap::new(), |btf| reasons_of(&btf))
}

fn reasons_of(btf: &Btf) -> BTreeMap<u32, String> {
    types_named(btf, "skb_drop_reason")
        .into_iter()
        .find_map(|found| match found {
            Type::Enum(reasons) => Some(reasons),
            _ => None,
        })
        .map(|reasons| {
            let named = reasons.members.iter().filter_map(|member| {
                let name = btf.resolve_name(member).ok()?;
                let short = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(&name);
                Some((member.val(), short.to_ascii_lowercase()))
            });
            named.collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_every_offset_on_this_kernel() {
        let NetworkFacts {
            config,
            missing_hooks,
            ..
        } = resolve(Wanted::Task {
            network_namespace: 7,
            timed: false,
            capture_bytes: None,
            tls_bytes: None,
            denied: &[],
        })
        .expect("this kernel has BTF");
        assert!(
            !missing_hooks.contains(&"inet_sock_set_state"),
            "{missing_hooks:?}"
        );
        assert_eq!(config.network_namespace, 7);
        assert_ne!(config.drop_arguments, DROP_UNKNOWN);
        assert_ne!(config.sock_daddr, config.sock_rcv_saddr);
        assert!(config.tcp_bytes_received > config.sock_err);
        assert_ne!(config.tcp_rtt_min, config.tcp_srtt_us);
        let reasons = drop_reasons();
        let unspecified = reasons.get(&config.drop_not_specified);
        assert_eq!(unspecified.map(String::as_str), Some("not_specified"));
        assert!(config.skb_transport_header > 0 && config.skb_head < config.skb_data);
    }

    #[test]
    fn reasons_have_names() {
        assert!(drop_reasons().values().any(|name| name == "no_socket"));
    }
}
