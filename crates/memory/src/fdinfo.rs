//! What the kernel reports about an open file.

/// The text of `/proc/self/fdinfo/N`: a name and a value in each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fdinfo(pub String);

impl Fdinfo {
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then(|| value.trim().parse().ok())?
        })
    }

    /// Number of an eBPF map, or of a program with the highest bit set, and the memory that the kernel charges for it.
    /// `None` for other files.
    pub fn charge(&self) -> Option<(u64, u64)> {
        const PROGRAM: u64 = 1 << 63;
        let map = self.number("map_id");
        let id = map.or_else(|| self.number("prog_id").map(|id| id | PROGRAM));
        // Links name their program too, and are charged for nothing that counts.
        Some((id?, self.number("memlock")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_names() {
        let info = Fdinfo("pos:\t0\nmap_type:\t1\nmax_entries:\t1024\nrun_cnt:\tx\n".into());
        assert_eq!(info.number("max_entries"), Some(1024));
        assert_eq!(info.number("map_type"), Some(1));
        assert_eq!(info.number("run_cnt"), None);
        assert_eq!(info.number("entries"), None);
        assert_eq!(info.charge(), None);
    }

    #[test]
    fn maps_and_programs_have_a_charge() {
        let charge = |text: &str| Fdinfo(text.to_owned()).charge();
        assert_eq!(charge("map_id:\t7\nmemlock:\t4096\n"), Some((7, 4096)));
        assert_eq!(
            charge("prog_id:\t7\nmemlock:\t64\n"),
            Some((1 << 63 | 7, 64))
        );
        assert_eq!(charge("link_type:\ttracing\nprog_id:\t7\n"), None);
    }
}
