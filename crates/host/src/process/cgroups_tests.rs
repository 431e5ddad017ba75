use super::*;

const ID: &str = "4f1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";

/// Debian 12 with systemd: one unified hierarchy.
const V2_MOUNTS: &str = "\
24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
33 24 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";
/// An older host: only v1, cpu and cpuacct mounted together.
const V1_MOUNTS: &str = "\
25 18 0:22 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,mode=755
26 25 0:23 / /sys/fs/cgroup/systemd rw,nosuid shared:9 - cgroup cgroup rw,xattr,release_agent=/usr/lib/systemd/systemd-cgroups-agent,name=systemd
27 25 0:25 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpuacct,cpu
28 25 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:11 - cgroup cgroup rw,memory
";
/// A hybrid host: every controller on v1, the v2 tree at `unified`.
const HYBRID_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

fn choose(mounts: &str, texts: &[&str]) -> ContainerHierarchy {
    let texts: Vec<String> = texts.iter().map(|text| text.replace("ID", ID)).collect();
    Mounts::parse(mounts).choose(&texts).unwrap()
}

fn mount(path: &str) -> Mount {
    Mount {
        path: path.into(),
        root: "/".into(),
    }
}

#[test]
fn unified_host_uses_v2() {
    let seen = choose(V2_MOUNTS, &["0::/system.slice/docker-ID.scope\n"]);
    assert_eq!(
        seen,
        ContainerHierarchy::V2 {
            mount: mount("/sys/fs/cgroup")
        }
    );
    let path = seen.path_in("0::/system.slice/ssh.service\n");
    assert_eq!(path, Some("/system.slice/ssh.service"));
}

#[test]
fn v1_host_uses_a_controller_and_never_the_named_hierarchy() {
    let seen = choose(V1_MOUNTS, &["2:name=systemd:/docker/ID\n1:cpuacct,cpu:/\n"]);
    assert_eq!(
        seen,
        ContainerHierarchy::V1 {
            controller: "memory".into(),
            mount: mount("/sys/fs/cgroup/memory")
        }
    );
}

#[test]
fn v1_controllers_mounted_together_are_found_by_either_name() {
    let seen = choose(V1_MOUNTS, &["4:cpuacct,cpu:/docker/ID\n3:memory:/\n"]);
    assert_eq!(
        seen,
        ContainerHierarchy::V1 {
            controller: "cpu".into(),
            mount: mount("/sys/fs/cgroup/cpu,cpuacct")
        }
    );
    assert_eq!(seen.path_in("4:cpuacct,cpu:/a\n3:memory:/b\n"), Some("/a"));
}

#[test]
fn hybrid_host_without_containers_uses_v1() {
    let seen = choose(HYBRID_MOUNTS, &["9:name=systemd:/\n4:memory:/x\n0::/\n"]);
    let ContainerHierarchy::V1 { controller, mount } = &seen else {
        panic!("{seen:?}")
    };
    assert_eq!(
        (controller.as_str(), mount.path.to_str()),
        ("memory", Some("/sys/fs/cgroup/memory"))
    );
    assert_eq!(
        seen.path_in("9:name=systemd:/\n4:memory:/x (deleted)\n0::/\n"),
        Some("/x")
    );
}

#[test]
fn hybrid_host_follows_where_the_containers_are() {
    let v1 = choose(
        HYBRID_MOUNTS,
        &["4:memory:/docker/ID\n0::/system.slice/docker.service\n"],
    );
    assert!(matches!(v1, ContainerHierarchy::V1 { .. }), "{v1:?}");
    let v2 = choose(
        HYBRID_MOUNTS,
        &["4:memory:/\n0::/system.slice/docker-ID.scope\n"],
    );
    assert_eq!(
        v2,
        ContainerHierarchy::V2 {
            mount: mount("/sys/fs/cgroup/unified")
        }
    );
}

#[test]
fn of_several_mounts_the_one_that_shows_most_is_used() {
    let inside = "\
50 49 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw
51 49 0:28 / /host/sys/fs/cgroup rw - cgroup2 cgroup rw
";
    assert_eq!(choose(inside, &[]).mount(), &mount("/host/sys/fs/cgroup"));
    let namespaced = "\
50 49 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw
51 49 0:28 /../.. /host/cg\\040roup rw - cgroup2 cgroup rw
";
    let expected = Mount {
        path: "/host/cg roup".into(),
        root: "/../..".into(),
    };
    assert_eq!(choose(namespaced, &[]).mount(), &expected);
}

#[test]
fn directories_follow_the_root_of_the_mount() {
    let at = |root: &str, path: &str| {
        let mount = Mount {
            path: "/cg".into(),
            root: root.into(),
        };
        ContainerHierarchy::V2 { mount }.directory(path)
    };
    assert_eq!(at("/", "/").unwrap(), Path::new("/cg"));
    assert_eq!(at("/", "/a/b").unwrap(), Path::new("/cg/a/b"));
    assert_eq!(
        at("/../..", "/../../kube/x").unwrap(),
        Path::new("/cg/kube/x")
    );
    assert_eq!(at("/docker/x", "/docker/x/y").unwrap(), Path::new("/cg/y"));
    assert!(matches!(
        at("/../..", "/"),
        Err(CgroupError::NotVisible { .. })
    ));
    assert!(matches!(
        at("/docker/x", "/docker/y"),
        Err(CgroupError::NotVisible { .. })
    ));
    for path in ["a", "", "/../etc", "/a/../../etc", "/a/./b", "/a\0b"] {
        assert!(
            matches!(at("/", path), Err(CgroupError::InvalidPath { .. })),
            "{path:?}"
        );
    }
}

#[test]
fn broken_mountinfo_and_cgroup_texts_are_skipped() {
    for text in [
        "",
        "x",
        " - ",
        "1 2 3 - cgroup2",
        "1 2 3 4 5 - cgroup cgroup",
        "\\04 - \\",
    ] {
        assert_eq!(Mounts::parse(text).choose(&[]), None, "{text:?}");
    }
    let seen = choose(V2_MOUNTS, &[]);
    for text in ["", ":", "0", "0:", "\n\n"] {
        assert_eq!(seen.path_in(text), None, "{text:?}");
    }
}

#[test]
fn ids_come_from_this_host_and_only_from_cgroup_file_systems() {
    let seen = ContainerHierarchy::detect().expect("a cgroup file system must be mounted");
    let own = read_cgroups(std::process::id()).unwrap();
    let path = seen.path_in(&own).unwrap();
    assert!(seen.kernfs_id(path).unwrap() > 0);
    assert!(matches!(
        seen.kernfs_id("/no-such-cgroup"),
        Err(CgroupError::Read { .. })
    ));
    let elsewhere = ContainerHierarchy::V2 {
        mount: mount("/usr"),
    };
    assert!(matches!(
        elsewhere.kernfs_id("/bin"),
        Err(CgroupError::NotCgroup { .. })
    ));
}
