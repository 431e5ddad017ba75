//! Which container a cgroup path belongs to.
//!
//! A path is text that the container runtime (or a user with a systemd session of their own) chose, so it names a
//! container, it does not prove one.

use profiler_model::Container;

/// A container and the part of the path that is its cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerCgroup<'path> {
    pub container: Container,
    /// The container's own cgroup: the path without what the container made below it.
    pub cgroup: &'path str,
}

impl ContainerCgroup<'_> {
    /// A pod has its own id in place of a container's.
    fn is_pod(&self) -> bool {
        self.container.pod_uid.as_deref() == Some(&self.container.id)
    }
}

/// Prefixes of systemd scopes (and of CRI-O's and podman's plain directories).
const PREFIXES: [(&str, &str); 4] = [
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("libpod-", "podman"),
];
/// Directories whose children are named by a full container id.
const PARENTS: [(&str, &str); 3] = [
    ("docker", "docker"),
    ("k8s.io", "containerd"),
    ("moby", "docker"),
];
/// Digits of a full container id.
const ID_DIGITS: usize = 64;

/// Whether a cgroup is another one or below it.
pub fn is_below(cgroup: &str, top: &str) -> bool {
    cgroup
        .strip_prefix(top.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Fewest characters of a prefix of a container's id.
pub(super) const PREFIX_DIGITS: usize = 12;

/// Whether this can be the beginning of a container's id, long enough to mean one.
pub fn is_id_prefix(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    text.len() >= PREFIX_DIGITS && text.bytes().all(is_digit)
}

/// The outermost container of `path`; a pod when there is none and the path has one. Whoever may make cgroups inside of
/// a container may give them the names of other containers, so those inside count only where
/// [`super::ProcessTable`] finds them confirmed.
///
/// The runtime is `kubepods` where the path shows the pod but not its runtime (the kubelet's
/// cgroupfs driver); the id is then the container's, or the pod's when the path ends there.
pub(super) fn container_of(path: &str) -> Option<ContainerCgroup<'_>> {
    let mut containers = containers_in(path);
    containers.next().or_else(|| pods_in(path).last())
}

/// All containers of a path, the outermost first, without pods.
pub(super) fn containers_in(path: &str) -> impl Iterator<Item = ContainerCgroup<'_>> {
    named_in(path).filter(|seen| !seen.is_pod())
}

fn pods_in(path: &str) -> impl Iterator<Item = ContainerCgroup<'_>> {
    named_in(path).filter(ContainerCgroup::is_pod)
}

/// The cgroup in `path` that is the container, or the pod, of this id.
pub(super) fn cgroup_of<'path>(path: &'path str, id: &str) -> Option<&'path str> {
    named_in(path)
        .find(|seen| seen.container.id == id)
        .map(|seen| seen.cgroup)
}

/// Pods and containers of a path, the outermost first.
fn named_in(path: &str) -> impl Iterator<Item = ContainerCgroup<'_>> {
    let mut parent = "";
    let mut pod: Option<String> = None;
    let mut end = 0;
    path.split('/').filter_map(move |segment| {
        let stop = end + segment.len();
        end = stop + 1;
        let seen = if let Some(container) = by_name(segment) {
            Some(container)
        } else if is_full_id(segment) {
            by_parent(parent, pod.is_some()).map(|runtime| (segment.to_owned(), runtime))
        } else {
            pod_uid(segment).map(|uid| {
                pod = Some(uid.clone());
                (uid, "kubepods")
            })
        };
        parent = segment;
        let (id, runtime) = seen?;
        let container = Container {
            id,
            runtime: runtime.to_owned(),
            pod_uid: pod.clone(),
        };
        Some(ContainerCgroup {
            container,
            cgroup: path.get(..stop)?,
        })
    })
}

/// The part of `path` that is a pod's cgroup, with the pod's unique id.
pub(super) fn pod_of(path: &str) -> Option<(String, &str)> {
    let pod = pods_in(path).last();
    pod.map(|seen| (seen.container.id, seen.cgroup))
}

/// `docker-<id>.scope`, `libpod-<id>`, `<slice>:cri-containerd:<id>` and the like.
fn by_name(segment: &str) -> Option<(String, &'static str)> {
    let mut parts = segment.rsplitn(3, ':');
    if let (Some(id), Some(runtime), Some(_slice)) = (parts.next(), parts.next(), parts.next())
        && is_full_id(id)
    {
        let known = PREFIXES
            .iter()
            .find(|(prefix, _)| prefix.trim_end_matches('-') == runtime);
        return Some((id.to_owned(), known.map_or("kubepods", |(_, name)| *name)));
    }
    let name = segment.strip_suffix(".scope").unwrap_or(segment);
    PREFIXES.iter().find_map(|(prefix, runtime)| {
        let id = name.strip_prefix(prefix)?;
        is_full_id(id).then(|| (id.to_owned(), *runtime))
    })
}

fn by_parent(parent: &str, pod: bool) -> Option<&'static str> {
    let known = PARENTS
        .iter()
        .find(|(name, _)| *name == parent)
        .map(|(_, runtime)| *runtime);
    known.or(pod.then_some("kubepods"))
}

/// `pod<uid>` (cgroupfs driver) or `kubepods-burstable-pod<uid>.slice` (systemd driver, in which
/// the dashes of the uid are underscores).
fn pod_uid(segment: &str) -> Option<String> {
    let uid = match segment.strip_suffix(".slice") {
        Some(slice) if slice.starts_with("kubepods") => slice.rsplit_once("-pod")?.1,
        Some(_) => return None,
        None => segment.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let plausible = uid.len() >= 32 && uid.bytes().all(|byte| is_hex(byte) || byte == b'-');
    plausible.then_some(uid)
}

fn is_full_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(is_hex)
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";
    const OUTER: &str = "aaaa0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";

    #[track_caller]
    fn check(path: &str, id: &str, runtime: &str, cgroup: &str) {
        let fill = |text: &str| text.replace("ID", ID).replace("OUTER", OUTER);
        let path = fill(path);
        let seen = container_of(&path).unwrap_or_else(|| panic!("no container in {path}"));
        assert_eq!(seen.container.id, fill(id), "{path}");
        assert_eq!(seen.container.runtime, runtime, "{path}");
        assert_eq!(seen.cgroup, fill(cgroup), "{path}");
    }

    #[test]
    fn a_cgroup_holds_what_is_below_it() {
        for (cgroup, top, below) in [
            ("/a/b", "/a", true),
            ("/a", "/a", true),
            ("/a/b", "/a/", true),
            ("/ab", "/a", false),
            ("/", "/a", false),
            ("/x", "/", true),
        ] {
            assert_eq!(is_below(cgroup, top), below, "{cgroup} {top}");
        }
    }

    #[test]
    fn systemd_scopes_name_runtime_and_id() {
        for (prefix, runtime) in [
            ("docker", "docker"),
            ("cri-containerd", "containerd"),
            ("crio", "cri-o"),
        ] {
            let slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod\
                8a1f2c3d_0001_4222_9333_abcdefabcdef.slice";
            let path = format!("{slice}/{prefix}-ID.scope");
            check(&path, "ID", runtime, &path);
        }
        check(
            "/machine.slice/libpod-ID.scope",
            "ID",
            "podman",
            "/machine.slice/libpod-ID.scope",
        );
    }

    #[test]
    fn cgroupfs_paths_name_the_container_by_directory() {
        check("/docker/ID", "ID", "docker", "/docker/ID");
        let pod = "/kubepods/burstable/pod8a1f2c3d-0001-4222-9333-abcdefabcdef";
        check(&format!("{pod}/ID"), "ID", "kubepods", &format!("{pod}/ID"));
        check(
            &format!("{pod}/crio-ID"),
            "ID",
            "cri-o",
            &format!("{pod}/crio-ID"),
        );
        check(
            "/libpod_parent/libpod-ID",
            "ID",
            "podman",
            "/libpod_parent/libpod-ID",
        );
    }

    #[test]
    fn containerd_without_delegation_separates_by_colons() {
        let path = "/system.slice/containerd.service/kubepods-besteffort-pod\
            8a1f2c3d_0001_4222_9333_abcdefabcdef.slice:cri-containerd:ID";
        check(path, "ID", "containerd", path);
    }

    #[test]
    fn outermost_container_counts_and_its_own_children_belong_to_it() {
        check(
            "/docker/OUTER/docker/ID/init",
            "OUTER",
            "docker",
            "/docker/OUTER",
        );
        let path = "/docker/OUTER/docker/ID/init".replace("OUTER", OUTER);
        let path = path.replace("ID", ID);
        let all: Vec<_> = containers_in(&path).map(|seen| seen.container.id).collect();
        assert_eq!(all, [OUTER, ID]);
        assert_eq!(cgroup_of(&path, ID), path.strip_suffix("/init"));
        check(
            "/x/libpod-ID.scope/container",
            "ID",
            "podman",
            "/x/libpod-ID.scope",
        );
    }

    #[test]
    fn paths_seen_from_inside_a_cgroup_namespace_keep_their_container() {
        check("/../../docker/ID", "ID", "docker", "/../../docker/ID");
        check(
            "/../cri-containerd-ID.scope/sub",
            "ID",
            "containerd",
            "/../cri-containerd-ID.scope",
        );
    }

    #[test]
    fn a_pod_without_container_is_named_by_its_uid() {
        let uid = "8a1f2c3d-0001-4222-9333-abcdefabcdef";
        check(
            &format!("/kubepods/pod{uid}"),
            uid,
            "kubepods",
            &format!("/kubepods/pod{uid}"),
        );
        let slice = "/kubepods.slice/kubepods-pod8a1f2c3d_0001_4222_9333_abcdefabcdef.slice";
        check(slice, uid, "kubepods", slice);
    }

    #[test]
    fn other_paths_are_no_container() {
        for path in [
            "",
            "/",
            "/user.slice/user-1000.slice/session-2.scope",
            "/system.slice/docker.service",
            "/docker/short",
            "/docker-zz.scope",
            "/machine.slice/libpod-conmon-ID.scope",
            "/crio-conmon-ID.scope",
            "/podman",
            "/pod123",
            "/somewhere/ID",
            "/\u{e9}\u{1f600}/docker-\u{e9}.scope",
        ] {
            let path = path.replace("ID", ID);
            assert_eq!(container_of(&path), None, "{path}");
        }
    }
}
