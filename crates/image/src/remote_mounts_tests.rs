//! Tests of who serves the files of a process.

use super::*;

const TEXT: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:22 / /proc rw - proc proc rw
30 22 0:40 / /mnt/far rw,relatime shared:7 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/far/near rw - tmpfs tmpfs rw
32 22 0:42 / /data\\040of\\134x rw master:3 propagate_from:1 - fuse.sshfs me@there:/ rw,user_id=0
33 22 0:43 / /over rw - overlay overlay rw,lowerdir=/lower:/mnt/far/layer,upperdir=/up,workdir=/work
34 22 0:44 / /plain rw - overlay overlay rw,lowerdir=/a\\:b:/lower,upperdir=/up,workdir=/work
35 22 0:45 / /auto rw - autofs systemd-1 rw,fd=50
";

fn mounts(text: &str) -> ProcessMounts {
    ProcessMounts::of_text(text)
}

fn device(major: u32, minor: u32) -> Device {
    Device { major, minor }
}

#[test]
fn mapped_files_are_judged_by_their_device() {
    let mounts = mounts(TEXT);
    for (minor, expected) in [
        (40, Served::Elsewhere),
        (41, Served::Here),
        (42, Served::Elsewhere),
        (43, Served::Elsewhere),
        (44, Served::Here),
        (45, Served::Elsewhere),
        // No visible mount: its path decides.
        (99, Served::Here),
    ] {
        let found = mounts.of_device(device(0, minor), b"/usr/bin/x");
        assert_eq!(found, expected, "0:{minor}");
    }
    let found = mounts.of_device(device(0, 99), b"/mnt/far/x");
    assert_eq!(found, Served::Elsewhere);
    assert_eq!(mounts.of_device(device(8, 1), b"/x"), Served::Here);
    assert_eq!(mounts.of_device(device(8, 77), b"/mnt/far/x"), Served::Here);
}

#[test]
fn a_disk_that_a_program_serves_is_served_elsewhere() {
    let mounts = mounts("22 1 8:17 / /usb rw - fuseblk /dev/sdb1 rw\n");
    assert_eq!(
        mounts.of_device(device(8, 17), b"/usb/x"),
        Served::Elsewhere
    );
}

#[test]
fn paths_are_judged_by_the_longest_mount_point_above_them() {
    let mounts = mounts(TEXT);
    for (path, expected) in [
        ("/usr/lib/debug/x", Served::Here),
        ("/mnt/far", Served::Elsewhere),
        ("/mnt/far/bin/x", Served::Elsewhere),
        ("/mnt/farther/x", Served::Here),
        ("/mnt/far/near/x", Served::Here),
        ("/data of\\x/bin", Served::Elsewhere),
        ("/over/bin/x", Served::Elsewhere),
        ("/plain/bin/x", Served::Here),
        ("/usr/../mnt/far/x", Served::Elsewhere),
    ] {
        assert_eq!(mounts.look_up(path.as_bytes()).served, expected, "{path}");
    }
}

#[test]
fn links_are_followed_only_where_none_can_lead_elsewhere() {
    let beside = mounts(TEXT).look_up(b"/usr/bin/x");
    assert_eq!((beside.may_follow, beside.is_in_root), (false, true));
    assert!(!mounts(TEXT).look_up(b"/mnt/far/x").is_in_root);
    let without = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
    let looked = mounts(without).look_up(b"/usr/../bin/x");
    assert_eq!((looked.served, looked.may_follow), (Served::Here, true));
    assert_eq!(looked.device, Some(device(8, 1)));
}

#[test]
fn a_mount_hides_the_one_below_it() {
    let text = "\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /m rw - nfs server:/ rw
31 30 0:41 / /m rw - tmpfs tmpfs rw
";
    assert_eq!(mounts(text).look_up(b"/m/x").served, Served::Here);
}

#[test]
fn layers_are_looked_up_where_the_overlay_was_mounted() {
    let container =
        "50 1 0:60 / / rw - overlay overlay rw,lowerdir=/far/a:relative,upperdir=/u,workdir=/w\n";
    let host = "30 22 0:40 / /far rw - ceph mon:/ rw\n";
    let mounts = ProcessMounts {
        own: Arc::new(Mounts::parse(container.as_bytes())),
        host: Arc::new(Mounts::parse(host.as_bytes())),
    };
    assert_eq!(
        mounts.of_device(device(0, 60), b"/bin/x"),
        Served::Elsewhere
    );
    assert_eq!(mounts.look_up(b"/bin/x").served, Served::Elsewhere);
    // What an older kernel reports for a file in such a layer.
    assert_eq!(
        mounts.of_device(device(0, 40), b"/bin/x"),
        Served::Elsewhere
    );
    // As in a user namespace, whose inner mounts are not visible from outside.
    let inner = format!("{container}51 50 0:61 / /far rw - fuse.x x rw\n");
    let mounts = ProcessMounts {
        own: Arc::new(Mounts::parse(inner.as_bytes())),
        host: Arc::default(),
    };
    assert_eq!(
        mounts.of_device(device(0, 60), b"/bin/x"),
        Served::Elsewhere
    );
}

#[test]
fn hostile_text_is_skipped_at_every_length() {
    for end in 0..TEXT.len() {
        let cut = &TEXT.as_bytes()[..end];
        assert!(Mounts::parse(cut).all.len() <= 8, "{end}");
    }
    let odd: [&[u8]; 9] = [
        b"",
        b" ",
        b"- - - - - - -",
        b"1 2 x:y / / rw - nfs a b",
        b"1 2 0:99999999999 / / rw - nfs a b",
        b"1 2 0:1 / relative rw - nfs a b",
        b"1 2 0:1 / / rw nfs a b",
        b"1 2 0:1 / / rw -",
        b"\xff\xfe 2 0:1",
    ];
    for line in odd {
        assert_eq!(parse_line(line), None, "{line:?}");
    }
    assert_eq!(unescape(b"\\777\\04\\"), b"?\\04\\");
    assert_eq!(split_folders(b"a\\"), [b"a\\".to_vec()]);
    let many = ["/x"; 2 * LAYERS_LIMIT].join(":");
    let many = layers(format!("lowerdir={many}").as_bytes());
    assert_eq!(many.len(), LAYERS_LIMIT);
}

#[test]
fn every_name_of_a_setting_is_understood() {
    for mode in [RemoteFiles::Skip, RemoteFiles::Read] {
        assert_eq!(mode.name().parse(), Ok(mode));
    }
    assert!("sometimes".parse::<RemoteFiles>().is_err());
}

/// The root of this machine may be anything; that it has one is enough.
#[test]
fn own_mounts_are_read() {
    let process = broker::open_path(OwnPath::at("/proc/self")).unwrap();
    let mounts = ProcessMounts::read(&Arc::new(process)).unwrap();
    assert!(!mounts.own.all.is_empty());
    assert!(mounts.look_up(b"/").device.is_some());
    assert!(!ProcessMounts::of_agent().own.all.is_empty());
}
