//! What the functions are that plaintext goes through, and how they take and give it.

use super::graph::RegisterNumber;

/// The library that a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    OpenSsl,
    BoringSsl,
    GnuTls,
    Go,
    Rustls,
}

impl Library {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenSsl => "OpenSSL",
            Self::BoringSsl => "BoringSSL",
            Self::GnuTls => "GnuTLS",
            Self::Go => "Go crypto/tls",
            Self::Rustls => "rustls",
        }
    }
}

/// Which way plaintext goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Write,
    Read,
    /// No way: it uses the socket, and tells which session does.
    Handshake,
    /// Out, encrypted: where a library hands out records. Its session is not among the arguments.
    Ciphertext,
    /// No way: it makes plaintext of what a handshake function took from the socket.
    Process,
    /// No way: it gives what was written before to the socket.
    Give,
}

/// How arguments and results are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    /// `int f(session, buffer, int length)`; the result is the length or not above zero.
    Int,
    /// `int f(session, buffer, size_t length, size_t *moved)`; the result is one when it worked.
    MovedByPointer,
    /// The same with further arguments before the last, which is not read: writes only.
    Size,
    /// `ssize_t f(session, buffer, size_t length)`; the result is the length or below zero.
    Long,
    /// Go's registers since 1.17: receiver, slice; the results are a length and an error.
    Go,
    /// `int f(session)`: handshakes.
    Session,
    /// `f(&conn, context)` of Go.
    GoSession,
    /// `Result<_, _> f(&mut self, &mut buffer, &mut session)` of Rust, whose result is in memory.
    RustProcess,
    /// `f(&mut self, payload)`: a vector or a borrowed slice, in memory.
    RustPayload,
    /// `usize f(&mut self, chunks, &mut session)`: one slice or several, in memory; the result is the length.
    RustChunks,
}

impl Convention {
    /// The registers of session, buffer, length and of the address for the moved length.
    pub(super) fn arguments(self) -> &'static [RegisterNumber] {
        const SYSTEM_V: [RegisterNumber; 4] = [
            RegisterNumber::RDI,
            RegisterNumber::RSI,
            RegisterNumber::RDX,
            RegisterNumber::RCX,
        ];
        const GO: [RegisterNumber; 3] = [
            RegisterNumber::RAX,
            RegisterNumber::RBX,
            RegisterNumber::RCX,
        ];
        const RUST_PROCESS: [RegisterNumber; 2] = [RegisterNumber::RCX, RegisterNumber::RDX];
        const RUST_PAYLOAD: [RegisterNumber; 2] = [RegisterNumber::RDI, RegisterNumber::RSI];
        const RUST_CHUNKS: [RegisterNumber; 2] = [RegisterNumber::RDX, RegisterNumber::RSI];
        match self {
            Self::Int | Self::Size | Self::Long => &SYSTEM_V[..3],
            Self::RustProcess => &RUST_PROCESS,
            Self::RustPayload => &RUST_PAYLOAD,
            Self::RustChunks => &RUST_CHUNKS,
            Self::MovedByPointer => &SYSTEM_V,
            Self::Session => &SYSTEM_V[..1],
            Self::Go => &GO,
            Self::GoSession => &GO[..1],
        }
    }

    pub(super) fn length_is_int(self) -> bool {
        self == Self::Int
    }

    /// Registers that a function of this convention leaves as they were.
    pub(super) fn keeps(self, register: RegisterNumber) -> bool {
        // System V: rbx, rsp, rbp, r12 to r15. Go keeps none but its stack pointers.
        let number = register.number();
        match self {
            Self::Go | Self::GoSession => matches!(number, 4 | 5),
            Self::Int
            | Self::MovedByPointer
            | Self::Size
            | Self::Long
            | Self::Session
            | Self::RustProcess
            | Self::RustPayload
            | Self::RustChunks => {
                matches!(number, 3 | 4 | 5 | 12..=15)
            }
        }
    }
}

/// A function that plaintext goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TlsCall {
    /// As its library calls it.
    pub name: &'static str,
    pub library: Library,
    pub operation: Operation,
    pub convention: Convention,
}

const fn openssl(name: &'static str, operation: Operation, convention: Convention) -> TlsCall {
    TlsCall {
        name,
        library: Library::OpenSsl,
        operation,
        convention,
    }
}

/// Those that are known by the names of their symbols.
pub(super) const NAMED: [TlsCall; 10] = [
    openssl("BIO_write", Operation::Ciphertext, Convention::Int),
    openssl("SSL_read", Operation::Read, Convention::Int),
    openssl("SSL_write", Operation::Write, Convention::Int),
    openssl("SSL_read_ex", Operation::Read, Convention::MovedByPointer),
    openssl("SSL_write_ex", Operation::Write, Convention::Size),
    openssl("SSL_write_ex2", Operation::Write, Convention::Size),
    openssl(
        "SSL_do_handshake",
        Operation::Handshake,
        Convention::Session,
    ),
    TlsCall {
        name: "gnutls_handshake",
        library: Library::GnuTls,
        operation: Operation::Handshake,
        convention: Convention::Session,
    },
    TlsCall {
        name: "gnutls_record_recv",
        library: Library::GnuTls,
        operation: Operation::Read,
        convention: Convention::Long,
    },
    TlsCall {
        name: "gnutls_record_send",
        library: Library::GnuTls,
        operation: Operation::Write,
        convention: Convention::Long,
    },
];

/// Reads and writes ask for a handshake as well, so that only the functions count that carry it out.
pub(super) const GO: [TlsCall; 4] = [
    TlsCall {
        name: "crypto/tls.(*Conn).Write",
        library: Library::Go,
        operation: Operation::Write,
        convention: Convention::Go,
    },
    TlsCall {
        name: "crypto/tls.(*Conn).Read",
        library: Library::Go,
        operation: Operation::Read,
        convention: Convention::Go,
    },
    TlsCall {
        name: "crypto/tls.(*Conn).serverHandshake",
        library: Library::Go,
        operation: Operation::Handshake,
        convention: Convention::GoSession,
    },
    TlsCall {
        name: "crypto/tls.(*Conn).clientHandshake",
        library: Library::Go,
        operation: Operation::Handshake,
        convention: Convention::GoSession,
    },
];

/// Rustls 0.23. What a program is given and gives, `Reader` and `Writer`, is compiled into it; these four
/// are seldom: they belong to no kind of connection, or are large.
pub(super) const RUSTLS: [TlsCall; 4] = [
    TlsCall {
        name: "rustls::common_state::CommonState::buffer_plaintext",
        library: Library::Rustls,
        operation: Operation::Write,
        convention: Convention::RustChunks,
    },
    TlsCall {
        name: "rustls::common_state::CommonState::take_received_plaintext",
        library: Library::Rustls,
        operation: Operation::Read,
        convention: Convention::RustPayload,
    },
    TlsCall {
        name: "rustls::msgs::deframer::buffers::DeframerVecBuffer::read",
        library: Library::Rustls,
        operation: Operation::Handshake,
        convention: Convention::Session,
    },
    TlsCall {
        name: "rustls::conn::ConnectionCore::process_new_packets",
        library: Library::Rustls,
        operation: Operation::Process,
        convention: Convention::RustProcess,
    },
];

/// Tells the session of a connection that was moved; all others are known without it.
pub(super) const RUSTLS_GIVES: TlsCall = TlsCall {
    name: "rustls::vecbuf::ChunkVecBuffer::write_to",
    library: Library::Rustls,
    operation: Operation::Give,
    convention: Convention::Session,
};
