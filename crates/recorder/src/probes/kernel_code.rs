//! Kernel code whose names the kernel was asked for.

use std::collections::HashSet;

use profiler_symbolize::{AddressStack, SymbolizerService};

use crate::bpf::{KernelNamer, LoadedObject};

/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1 << 15;

/// What one collection has asked for; without a namer the symbolizer reads all names that there are.
#[derive(Debug, Default)]
pub(super) struct KernelCode {
    namer: Option<KernelNamer>,
    asked: HashSet<u64>,
}

impl KernelCode {
    pub(super) fn of(object: &mut LoadedObject) -> Self {
        Self {
            // Its failure was reported when it was loaded.
            namer: object.take_kernel_namer().ok(),
            asked: HashSet::new(),
        }
    }

    /// Tells the symbolizer the names of what is new, before it is asked for the stacks.
    pub(super) fn tell(&mut self, symbolizer: &SymbolizerService, stacks: &[AddressStack]) {
        let Some(namer) = &mut self.namer else {
            return;
        };
        if self.asked.len() > MAX_ADDRESSES {
            self.asked.clear();
        }
        let addresses = stacks.iter().flat_map(AddressStack::kernel_code);
        let fresh: Vec<u64> = addresses
            .filter(|address| self.asked.insert(*address))
            .collect();
        if fresh.is_empty() {
            return;
        }
        match namer.names(&fresh) {
            Ok(names) => symbolizer.know_kernel(names),
            Err(error) => {
                tracing::warn!(%error, "names of kernel code are read from /proc/kallsyms");
                self.namer = None;
            }
        }
    }
}
