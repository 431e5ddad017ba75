//! The Rust twin of `shares.c`: three functions with known shares of one thread's CPU time, in
//! slices measured with the thread's own CPU clock. Prints what it measured as a line of JSON
//! after the given number of seconds or at SIGTERM.

use std::{
    env, process,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const CYCLE_NS: u64 = 20_000_000;
const WEIGHTS: [u64; 3] = [60, 30, 10];

const SIGTERM: i32 = 15;

static STOPPING: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

extern "C" fn stop(_signal: i32) {
    STOPPING.store(true, Ordering::Relaxed);
}

mod workload {
    use std::hint::black_box;

    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }

    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

    #[inline(never)]
    pub fn cpu_ns() -> u64 {
        let mut time = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the pointer is valid for the call, which only writes to it.
        let result = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) };
        assert_eq!(result, 0);
        time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
    }

    #[inline(never)]
    pub fn hot_sixty(state: &mut u64, until: u64) -> u64 {
        loop {
            for _ in 0..200_000 {
                *state = black_box(*state).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
            let now = cpu_ns();
            if now >= until {
                return now;
            }
        }
    }

    #[inline(never)]
    pub fn hot_thirty(state: &mut u64, until: u64) -> u64 {
        loop {
            for _ in 0..150_000 {
                *state ^= black_box(*state) << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
            }
            let now = cpu_ns();
            if now >= until {
                return now;
            }
        }
    }

    #[inline(never)]
    pub fn hot_ten(state: &mut u64, until: u64) -> u64 {
        loop {
            for _ in 0..40_000 {
                *state = black_box(*state) / 3 + 0x9e37_79b9_7f4a_7c15;
            }
            let now = cpu_ns();
            if now >= until {
                return now;
            }
        }
    }
}

fn main() {
    let seconds: f64 = env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3600.0);
    // SAFETY: the handler only stores to an atomic.
    unsafe { signal(SIGTERM, stop) };
    let functions = [workload::hot_sixty, workload::hot_thirty, workload::hot_ten];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut state, mut random) = (1, 88_172_645_463_325_252_u64);
    let (mut due, mut spent) = ([0; 3], [0; 3]);
    let mut now = workload::cpu_ns();
    while Instant::now() < end && !STOPPING.load(Ordering::Relaxed) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let cycle = CYCLE_NS / 2 + random % CYCLE_NS;
        for (index, function) in functions.iter().enumerate() {
            due[index] += cycle * WEIGHTS[index] / 100;
            if due[index] > spent[index] {
                let begin = now;
                now = function(&mut state, begin + (due[index] - spent[index]));
                spent[index] += now - begin;
            }
        }
    }
    println!(
        "{{\"pid\":{},\"functions\":{{\"hot_sixty\":{},\"hot_thirty\":{},\"hot_ten\":{}}}}}",
        process::id(),
        spent[0],
        spent[1],
        spent[2]
    );
}
