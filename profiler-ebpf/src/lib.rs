//! Empty on purpose: the programs are in the binary target.
#![no_std]
