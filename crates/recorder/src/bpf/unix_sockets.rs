//! Unix sockets: where the kernel keeps what is read of them, and the kernel side's table of them.

use profiler_common::unix_sockets::{UnixOffsets, UnixSocket};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    offsets::{OffsetError, kernel_btf, member_offset},
};

const TABLE: &str = "UNIX_SOCKETS";

/// Resolves every offset. Fails where Unix sockets are a module or not there at all.
pub(super) fn resolve() -> Result<UnixOffsets, OffsetError> {
    let btf = kernel_btf()?;
    let at = |structure, path: &[&'static str]| member_offset(&btf, structure, path);
    Ok(UnixOffsets {
        watched: 1,
        sock_type: at("sock", &["sk_type"])?,
        sock_socket: at("sock", &["sk_socket"])?,
        sock_queue_length: at("sock", &["sk_receive_queue", "qlen"])?,
        // The socket is the first member.
        socket_inode: at("socket_alloc", &["vfs_inode", "i_ino"])?,
        address: at("unix_sock", &["addr"])?,
        peer: at("unix_sock", &["peer"])?,
        address_bytes: at("unix_address", &["len"])?,
        address_name: at("unix_address", &["name"])?,
    })
}

impl LoadedObject {
    /// Every Unix socket in the kernel's table.
    pub fn unix_sockets(&self) -> Result<Vec<UnixSocket>, LoadError> {
        let mut found = Vec::new();
        self.read_map(TABLE, |_cookie: u64, socket: UnixSocket| found.push(socket))?;
        Ok(found)
    }

    /// Adds a socket that is older than the programs, unless they have met it by now. False when
    /// there is no room.
    pub fn add_unix_socket(&mut self, socket: &UnixSocket) -> Result<bool, LoadError> {
        self.add_new(TABLE, socket.cookie, socket.to_bytes())
    }

    pub fn forget_unix_socket(&mut self, cookie: u64) -> Result<(), LoadError> {
        self.remove(TABLE, &cookie.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_every_offset_on_this_kernel() {
        let offsets = resolve().expect("this kernel has Unix sockets");
        assert_eq!(offsets.watched, 1);
        assert_ne!(offsets.address, offsets.peer);
        assert!(offsets.socket_inode > 0 && offsets.sock_socket > 0);
    }
}
