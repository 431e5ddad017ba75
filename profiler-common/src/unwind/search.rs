//! Searches without branches. The verifier follows one path through each.

/// All ones when `left <= right`, else 0. Both below 2^63.
#[inline(always)]
fn at_most(left: u64, right: u64) -> u64 {
    ((left.wrapping_sub(right).wrapping_sub(1) as i64) >> 63) as u64
}

/// Defines a search over an array whose length is a power of two.
///
/// The result is the index of the last key that is not above `key`, given that the first one is
/// not and that keys ascend; unused keys at the end are the greatest value of their type.
macro_rules! last_at_most {
    ($name:ident, $key:ty) => {
        #[inline(always)]
        pub fn $name<const N: usize>(keys: &[$key; N], key: $key) -> usize {
            const { assert!(N.is_power_of_two()) };
            let mut base = 0;
            let mut half = N / 2;
            while half > 0 {
                let probe = (base + half) & (N - 1);
                // SAFETY: masked to the length of the array.
                let value = unsafe { *keys.get_unchecked(probe) };
                base += at_most(u64::from(value), u64::from(key)) as usize & half;
                half /= 2;
            }
            base & (N - 1)
        }
    };
}

last_at_most!(last_row_at_most, u32);
last_at_most!(last_offset_at_most, u16);
last_at_most!(last_start_at_most, u64);
