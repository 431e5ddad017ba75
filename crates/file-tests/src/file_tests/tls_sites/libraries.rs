//! Libraries of Debian and programs that have TLS linked in.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use profiler_tls_sites::{Evidence, Library, Operation, SiteClass};

use super::found::{entry, found, function, register, returns};

const FOLDER: &str = "/usr/lib/x86_64-linux-gnu";

pub(crate) fn library(name: &str, package: &str) -> PathBuf {
    let path = Path::new(FOLDER).join(name);
    assert!(
        path.metadata().is_ok_and(|metadata| metadata.size() > 0),
        "no {}: install {package}",
        path.display()
    );
    path
}

#[test]
fn probes_of_openssl_are_moved_to_cheap_instructions() {
    let file = found(&library("libssl.so.3", "libssl3"));
    assert_eq!(file.library, Library::OpenSsl);
    assert_eq!(file.evidence, Evidence::ExportedSymbols);
    for name in ["SSL_read", "SSL_write"] {
        let one = function(&file, name);
        // `js` behind the check of the length.
        assert_eq!(entry(one), (22, SiteClass::Jump), "{name}");
        let places = [one.entry.session, one.entry.buffer, one.entry.length].map(register);
        assert_eq!(places, [7, 6, 2], "rdi, rsi, rdx");
        assert_eq!(one.entry.site.frame_bytes, Some(0x18));
    }
    // `jne` of the check that the stack is whole, where eax holds the result.
    let read = function(&file, "SSL_read");
    assert_eq!(returns(read), [(0x38, SiteClass::Jump, 0)]);
    assert_eq!(read.returns[0].site.frame_bytes, Some(0x18));
    // The call of the function that does the work.
    let extended = function(&file, "SSL_read_ex");
    assert_eq!(entry(extended), (4, SiteClass::Call));
    assert_eq!(extended.entry.moved.map(register), Some(1), "rcx");
    let [(_, class, 0)] = returns(extended)[..] else {
        panic!("{:?}", returns(extended));
    };
    assert_eq!(class, SiteClass::Stepped, "nothing cheap behind that call");
    assert_eq!(extended.returns[0].site.frame_bytes, Some(0));
    assert_eq!(entry(function(&file, "SSL_write_ex")), (4, SiteClass::Call));
    let handshake = function(&file, "SSL_do_handshake");
    assert!(handshake.entry.site.class.is_cheap());
    assert_eq!(register(handshake.entry.session), 7, "rdi");
}

#[test]
fn probes_of_gnutls_are_found() {
    let file = found(&library("libgnutls.so.30", "libgnutls30"));
    assert_eq!(file.library, Library::GnuTls);
    let send = function(&file, "gnutls_record_send");
    assert_eq!(entry(send), (5, SiteClass::Jump));
    let receive = function(&file, "gnutls_record_recv");
    assert!(!receive.returns.is_empty());
}

#[test]
fn node_has_openssl_in_it() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&path)
        .map(|folder| folder.join("node"))
        .find(|path| path.is_file())
        .expect("no node in the path: install nodejs");
    let node = node.canonicalize().unwrap();
    let file = found(&node);
    assert_eq!(file.library, Library::OpenSsl);
    for name in ["SSL_read", "SSL_write", "SSL_read_ex", "SSL_write_ex"] {
        let one = function(&file, name);
        assert!(one.entry.site.class.is_cheap(), "{name}");
        assert_eq!(
            one.call.operation == Operation::Write,
            one.returns.is_empty()
        );
    }
}

/// A Go program without symbols.
#[test]
fn go_keeps_the_table_that_names_its_functions() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("main.go");
    std::fs::write(&source, GO_PROGRAM).unwrap();
    let program = folder.path().join("program");
    let built = Command::new("go")
        .args(["build", "-ldflags=-s -w", "-o"])
        .args([&program, &source])
        .env("GO111MODULE", "off")
        .output()
        .expect("run go: install golang-go");
    assert!(built.status.success(), "{built:?}");
    let file = found(&program);
    assert_eq!(
        (file.library, file.evidence),
        (Library::Go, Evidence::GoTable)
    );
    let write = function(&file, "crypto/tls.(*Conn).Write");
    assert_eq!(
        entry(write).1,
        SiteClass::Jump,
        "the check of the stack's room"
    );
    let places = [write.entry.session, write.entry.buffer, write.entry.length].map(register);
    assert_eq!(places, [0, 3, 1], "rax, rbx, rcx");
    let handshake = function(&file, "crypto/tls.(*Conn).serverHandshake");
    assert_eq!(register(handshake.entry.session), 0, "rax");
    let read = function(&file, "crypto/tls.(*Conn).Read");
    assert!(!read.returns.is_empty());
    assert_eq!(read.returns[0].site.frame_bytes, Some(0));
}

const GO_PROGRAM: &str = "\
package main

import \"net/http\"

func main() {
\thttp.ListenAndServeTLS(\"127.0.0.1:0\", \"\", \"\", nil)
}
";

/// The same library with and without its symbols: what is inferred must be what they say.
#[test]
fn a_program_without_symbols_has_the_functions_that_its_symbols_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("main.c");
    std::fs::write(&source, OPENSSL_PROGRAM).unwrap();
    let program = folder.path().join("program");
    let built = Command::new("gcc")
        .args(["-O1", "-static-libgcc", "-o"])
        .args([&program, &source])
        .args([
            "-Wl,-Bstatic",
            "-lssl",
            "-lcrypto",
            "-Wl,-Bdynamic",
            "-ldl",
            "-lpthread",
        ])
        .output()
        .expect("run gcc");
    assert!(built.status.success(), "install libssl-dev: {built:?}");
    let with = found(&program);
    let stripped = Command::new("strip").arg(&program).status().unwrap();
    assert!(stripped.success());
    let without = found(&program);
    assert_eq!(with.evidence, Evidence::Symbols);
    assert_eq!(without.evidence, Evidence::ErrorConstants);
    let read = function(&without, "SSL_read");
    assert_eq!(read.address, function(&with, "SSL_read").address);
    assert_eq!(read.returns, function(&with, "SSL_read").returns);
    assert!(
        without
            .functions
            .iter()
            .any(|one| one.call.operation == Operation::Write)
    );
}

const OPENSSL_PROGRAM: &str = "\
#include <openssl/ssl.h>

int main(void) {
  SSL *ssl = SSL_new(SSL_CTX_new(TLS_method()));
  size_t moved;
  char room[16];
  return SSL_read(ssl, room, 16) + SSL_write(ssl, room, 16)
    + SSL_read_ex(ssl, room, 16, &moved) + SSL_write_ex(ssl, room, 16, &moved);
}
";
