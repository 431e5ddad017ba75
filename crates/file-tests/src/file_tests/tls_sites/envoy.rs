//! Stripped Envoys, in which BoringSSL is linked.

use std::path::PathBuf;

use profiler_tls_sites::{Evidence, Library, SiteClass};

use super::found::{entry, found, function, register, returns};

fn envoy(version: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = folder.join(format!("envoy-{version}/envoy"));
    assert!(
        path.is_file(),
        "no Envoy {version} at {}: run this step by `cargo xtask test`",
        path.display()
    );
    path
}

fn check(version: &str, read_at: u64, write_at: u64, result_at: u64) {
    let file = found(&envoy(version));
    assert_eq!(file.library, Library::BoringSsl);
    assert_eq!(file.evidence, Evidence::ErrorConstants);
    assert_eq!(file.left_out, []);
    let (read, write) = (function(&file, "SSL_read"), function(&file, "SSL_write"));
    assert_eq!(
        (read.address, write.address),
        (read_at, write_at),
        "{read_at:#x}"
    );
    for one in [read, write] {
        assert_eq!(entry(one), (0, SiteClass::Push));
        let site = one.entry;
        let places = [site.session, site.buffer, site.length].map(register);
        assert_eq!(places, [7, 6, 2], "rdi, rsi, rdx");
        assert_eq!(site.site.frame_bytes, Some(0));
    }
    // A jump behind the copy of what was read, with the count in rbx.
    assert_eq!(returns(read), [(result_at, SiteClass::Jump, 3)]);
    // Pushed: rbp, r15, r14, rbx, rax.
    assert_eq!(read.returns[0].site.frame_bytes, Some(40));
}

#[test]
fn envoy_1_36() {
    check("1.36.4", 0x499_3850, 0x499_3c00, 0xb8);
}

#[test]
fn envoy_1_39() {
    check("1.39.0", 0x5a5_f1a0, 0x5a5_f550, 0xb8);
}

#[test]
fn envoy_1_40() {
    check("1.40.0", 0x5bf_b770, 0x5bf_baf0, 0xae);
}
