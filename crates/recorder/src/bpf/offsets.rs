//! Offsets of kernel struct members, from the running kernel's BTF.
//!
//! Rust programs carry no CO-RE relocations, so what C tools let the loader patch is looked up here
//! by name and handed to the programs as globals.

use std::collections::BTreeMap;

use btf_rs::{Backend, Btf, Type};
use parking_lot::Mutex;
use profiler_common::{
    config::{KernelOffsets, NO_ORC},
    limits::MAX_KERNEL_FRAMES,
    off_cpu::{SWITCH_STATE_LAST, SWITCH_UNKNOWN, SWITCH_WITHOUT_STATE},
};

/// Where the kernel publishes its types.
const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// What was looked up by name; the running kernel's types stay what they are.
static NAMED: Mutex<BTreeMap<String, Vec<Type>>> = Mutex::new(BTreeMap::new());

const MAX_STACK: &str = "/proc/sys/kernel/perf_event_max_stack";

/// What our programs copy of a stack that the kernel walks.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const COPIED_FRAMES: u32 = MAX_KERNEL_FRAMES as u32;

#[derive(Debug, thiserror::Error)]
pub enum OffsetError {
    #[error("read {VMLINUX_BTF}: {0} (the kernel needs CONFIG_DEBUG_INFO_BTF=y)")]
    Read(String),
    #[error("this kernel's BTF has no struct {0}")]
    NoStruct(&'static str),
    #[error("this kernel's struct {structure} has no member {member}")]
    NoMember {
        structure: &'static str,
        member: &'static str,
    },
    #[error("this kernel's BTF has no cgroup controller {0}")]
    NoController(String),
}

/// Resolves every offset. `v1_controller` names the controller whose v1 hierarchy carries the
/// containers (`css_set.subsys` is indexed by it); `None` on v2 hosts.
pub(super) fn resolve(v1_controller: Option<&str>) -> Result<KernelOffsets, OffsetError> {
    let btf = kernel_btf()?;
    let at = |structure, path: &[&'static str]| member_offset(&btf, structure, path);
    let subsystem = match v1_controller {
        Some(controller) => controller_index(&btf, controller)?,
        None => 0,
    };
    let (task_in_iowait, in_iowait_mask) =
        member_bit(&btf, "task_struct", "in_iowait").unwrap_or((0, 0));
    Ok(KernelOffsets {
        task_group_leader: at("task_struct", &["group_leader"])?,
        task_thread_pid: at("task_struct", &["thread_pid"])?,
        task_start_boottime: at("task_struct", &["start_boottime"])?,
        task_signal: at("task_struct", &["signal"])?,
        task_cgroups: at("task_struct", &["cgroups"])?,
        task_tgid: at("task_struct", &["tgid"])?,
        task_pid: at("task_struct", &["pid"])?,
        signal_live: at("signal_struct", &["live"])?,
        pid_level: at("pid", &["level"])?,
        pid_numbers: at("pid", &["numbers"])?,
        upid_bytes: struct_size(&btf, "upid")?,
        upid_nr: at("upid", &["nr"])?,
        upid_ns: at("upid", &["ns"])?,
        pid_namespace_inum: at("pid_namespace", &["ns", "inum"])?,
        css_set_subsys: at("css_set", &["subsys"])? + subsystem * 8,
        css_set_dfl_cgrp: at("css_set", &["dfl_cgrp"])?,
        cgroup_self: at("cgroup", &["self"])?,
        cgroup_kn: at("cgroup", &["kn"])?,
        css_cgroup: at("cgroup_subsys_state", &["cgroup"])?,
        css_parent: at("cgroup_subsys_state", &["parent"])?,
        kernfs_node_id: at("kernfs_node", &["id"])?,
        task_self_exec_id: at("task_struct", &["self_exec_id"])?,
        task_flags: at("task_struct", &["flags"])?,
        task_mm: at("task_struct", &["mm"])?,
        task_state: at("task_struct", &["__state"]).or_else(|_| at("task_struct", &["state"]))?,
        task_in_iowait,
        in_iowait_mask,
        switch_arguments: switch_arguments(&btf),
        task_on_rq: at("task_struct", &["on_rq"])?,
        task_comm: at("task_struct", &["comm"])?,
        // Without the kernel's accounting of switches it is not there.
        task_arrivals: at("task_struct", &["sched_info", "pcount"]).unwrap_or(0),
        task_stack: at("task_struct", &["stack"])?,
        task_kernel_sp: if cfg!(target_arch = "x86_64") {
            at("task_struct", &["thread", "sp"]).unwrap_or(0)
        } else {
            0
        },
        task_sched_delayed: at("task_struct", &["se", "sched_delayed"]).unwrap_or(0),
        most_stack_frames: most_stack_frames(),
        orc_end_bit: orc_end_bit(&btf),
    })
}

/// What entries of the kernel's own tables look like.
fn orc_end_bit(btf: &Btf) -> u32 {
    let bit = |name| {
        let member = own_member(btf, "orc_entry", name).ok()??;
        Some(member.bit_offset())
    };
    let is_known = bit("sp_offset") == Some(0)
        && bit("bp_offset") == Some(16)
        && bit("sp_reg") == Some(32)
        && bit("bp_reg") == Some(36)
        && bit("type") == Some(40)
        && struct_size(btf, "orc_entry").is_ok_and(|bytes| bytes == 6);
    if is_known {
        bit("end").unwrap_or(0)
    } else {
        NO_ORC
    }
}

/// The bound of the kernel's own walker. It cannot change while a program that uses it is loaded.
fn most_stack_frames() -> u32 {
    let text = std::fs::read_to_string(MAX_STACK).unwrap_or_default();
    let frames: Option<u32> = text.trim().parse().ok();
    frames.map_or(COPIED_FRAMES, |frames| frames.min(COPIED_FRAMES))
}

/// The running kernel's types.
pub(super) fn kernel_btf() -> Result<Btf, OffsetError> {
    // Mapping costs less memory; sysfs allows it since 6.16 only.
    Btf::from_file_with_backend(VMLINUX_BTF, Backend::Mmap)
        .or_else(|_not_mappable| Btf::from_file_with_backend(VMLINUX_BTF, Backend::Cache))
        .map_err(|error| OffsetError::Read(error.to_string()))
}

/// The kernel's types of this name. To find them takes a walk over all types, 2 ms: a task asks for 40 to 100 members of at
/// most 26 structs, so each name is looked for once in the life of the process.
pub(super) fn types_named(btf: &Btf, name: &str) -> Vec<Type> {
    let mut named = NAMED.lock();
    if let Some(found) = named.get(name) {
        return found.clone();
    }
    let found = btf.resolve_types_by_name(name).unwrap_or_default();
    named.insert(name.to_owned(), found.clone());
    found
}

fn find_struct(btf: &Btf, name: &'static str) -> Result<btf_rs::Struct, OffsetError> {
    types_named(btf, name)
        .into_iter()
        .find_map(|found| {
            if let Type::Struct(structure) = found {
                Some(structure)
            } else {
                None
            }
        })
        .ok_or(OffsetError::NoStruct(name))
}

fn struct_size(btf: &Btf, name: &'static str) -> Result<u32, OffsetError> {
    u32::try_from(find_struct(btf, name)?.size()).map_err(|_error| OffsetError::NoStruct(name))
}

/// Byte offset of `path` inside `structure`, through nested structs by name and through anonymous
/// structs and unions silently.
pub(super) fn member_offset(
    btf: &Btf,
    structure: &'static str,
    path: &[&'static str],
) -> Result<u32, OffsetError> {
    let mut current = find_struct(btf, structure)?;
    let mut total = 0;
    for (depth, member) in path.iter().enumerate() {
        let missing = OffsetError::NoMember { structure, member };
        let Some((offset, inner)) = search(btf, &current, member, 0) else {
            return Err(missing);
        };
        total += offset;
        if depth + 1 < path.len() {
            let Some(Type::Struct(next)) = inner else {
                return Err(missing);
            };
            current = next;
        }
    }
    Ok(total)
}

/// The byte that holds a bit field of one bit, and the bit in it.
fn member_bit(btf: &Btf, structure: &'static str, name: &str) -> Option<(u32, u32)> {
    let member = own_member(btf, structure, name).ok()??;
    let bit = member.bit_offset();
    (member.bitfield_size() == Some(1)).then_some((bit / 8, 1 << (bit % 8)))
}

/// Byte and mask of a member that is a byte, or bits of one.
pub(super) fn byte_and_mask(
    btf: &Btf,
    structure: &'static str,
    name: &'static str,
) -> Result<(u32, u32), OffsetError> {
    let place = own_member(btf, structure, name)?.map(|member| {
        let bits = member.bitfield_size().filter(|bits| *bits > 0);
        (member.bit_offset(), bits.unwrap_or(8))
    });
    match place {
        Some((at, bits)) if at % 8 + bits <= 8 => Ok((at / 8, ((1 << bits) - 1) << (at % 8))),
        Some(_) | None => Err(OffsetError::NoMember {
            structure,
            member: name,
        }),
    }
}

/// A member of the structure itself, none of a nested one.
fn own_member(
    btf: &Btf,
    structure: &'static str,
    name: &str,
) -> Result<Option<btf_rs::Member>, OffsetError> {
    let members = find_struct(btf, structure)?.members;
    Ok(members
        .into_iter()
        .find(|member| btf.resolve_name(member).is_ok_and(|found| found == name)))
}

/// How `sched_switch` is called on this kernel.
fn switch_arguments(btf: &Btf) -> u32 {
    let Some(parameters) = tracepoint_parameters(btf, "btf_trace_sched_switch") else {
        return SWITCH_UNKNOWN;
    };
    let is_pointer: Vec<bool> = parameters
        .iter()
        .map(|parameter| matches!(btf.resolve_chained_type(parameter), Ok(Type::Ptr(_))))
        .collect();
    // The first is the tracepoint's own.
    match is_pointer.as_slice() {
        [true, false, true, true] => SWITCH_WITHOUT_STATE,
        [true, false, true, true, false] => SWITCH_STATE_LAST,
        _ => SWITCH_UNKNOWN,
    }
}

/// The parameters of a tracepoint's type, a pointer to a function.
pub(super) fn tracepoint_parameters(btf: &Btf, name: &str) -> Option<Vec<btf_rs::Parameter>> {
    types_named(btf, name).into_iter().find_map(|found| {
        let Type::Typedef(pointer) = found else {
            return None;
        };
        let Type::Ptr(function) = btf.resolve_chained_type(&pointer).ok()? else {
            return None;
        };
        let Type::FuncProto(prototype) = btf.resolve_chained_type(&function).ok()? else {
            return None;
        };
        Some(prototype.parameters)
    })
}

/// Nesting of anonymous members that is followed.
const MAX_NESTING: u32 = 8;

/// Offset in bytes and, for a struct or union, the type of the member `name`.
fn search(
    btf: &Btf,
    structure: &btf_rs::Struct,
    name: &str,
    nesting: u32,
) -> Option<(u32, Option<Type>)> {
    if nesting > MAX_NESTING {
        return None;
    }
    for member in &structure.members {
        let offset = member.bit_offset() / 8;
        let inner = member_type(btf, member);
        let member_name = btf.resolve_name(member).unwrap_or_default();
        if member_name == name {
            return Some((offset, inner));
        }
        if member_name.is_empty()
            && let Some(Type::Struct(nested) | Type::Union(nested)) = &inner
            && let Some((deeper, found)) = search(btf, nested, name, nesting + 1)
        {
            return Some((offset + deeper, found));
        }
    }
    None
}

/// The type of a member without its qualifiers and typedefs.
fn member_type(btf: &Btf, member: &btf_rs::Member) -> Option<Type> {
    let mut current = btf.resolve_chained_type(member).ok()?;
    for _ in 0..MAX_NESTING {
        current = match &current {
            Type::Typedef(inner) => btf.resolve_chained_type(inner).ok()?,
            Type::Const(inner) | Type::Volatile(inner) => btf.resolve_chained_type(inner).ok()?,
            _ => return Some(current),
        };
    }
    None
}

/// Index of a controller in `css_set.subsys`: its value in `enum cgroup_subsys_id`.
fn controller_index(btf: &Btf, controller: &str) -> Result<u32, OffsetError> {
    // The cpu and cpuacct controllers share a mount; names differ from the mount's in one case.
    let id = match controller {
        "blkio" => "io_cgrp_id".to_owned(),
        other => format!("{other}_cgrp_id"),
    };
    types_named(btf, "cgroup_subsys_id")
        .into_iter()
        .find_map(|found| {
            let Type::Enum(found) = found else {
                return None;
            };
            found
                .members
                .iter()
                .find(|member| btf.resolve_name(*member).is_ok_and(|name| name == id))
                .map(btf_rs::EnumMember::val)
        })
        .ok_or_else(|| OffsetError::NoController(controller.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_every_offset_on_this_kernel() {
        let offsets = resolve(None).expect("this kernel has BTF");
        assert!(offsets.task_group_leader > 0);
        assert!(offsets.upid_bytes >= 16);
        assert_ne!(offsets.task_tgid, offsets.task_pid);
        assert_ne!(offsets.switch_arguments, SWITCH_UNKNOWN);
        assert!(offsets.in_iowait_mask.is_power_of_two());
        assert!((1..=127).contains(&offsets.most_stack_frames));
    }

    #[test]
    fn refuses_a_controller_that_does_not_exist() {
        let error = resolve(Some("nonsense")).expect_err("no such controller");
        assert_eq!(
            error.to_string(),
            "this kernel's BTF has no cgroup controller nonsense"
        );
    }
}
