//! Tests of the eBPF object and of single probes on the kernel of the machine, as root. They fail without the object and
//! without root, and say so. The step `new-probe` runs them.

#[cfg(test)]
mod object;
#[cfg(test)]
mod table;
#[cfg(test)]
mod process_events;
