// A Rust program whose global allocator shows itself in GCspy by size classes. What gcspy.h needs is marked.
//
//     cc -O2 -c -I"$(gcspy --include-dir)" shim.c -o shim.o
//     rustc -O -C link-arg=shim.o arena.rs && ./arena
//
// It allocates and frees for ever; with an argument it does one round for each line of its input, and prints the bytes in use, which
// is how it is tested.
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_char, c_int, c_void, CStr}; // gcspy
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

const CLASSES: usize = 32; // of powers of two

#[allow(clippy::declare_interior_mutable_const)]
const ZERO: AtomicI64 = AtomicI64::new(0);
static LIVE: [AtomicI64; CLASSES] = [ZERO; CLASSES];
static BYTES: [AtomicI64; CLASSES] = [ZERO; CLASSES];

struct Counted;

fn class_of(layout: &Layout) -> usize {
    (usize::BITS - layout.size().max(1).saturating_sub(1).leading_zeros()).min(CLASSES as u32 - 1) as usize
}

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE[class_of(&layout)].fetch_add(1, Relaxed);
        BYTES[class_of(&layout)].fetch_add(layout.size() as i64, Relaxed);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE[class_of(&layout)].fetch_sub(1, Relaxed);
        BYTES[class_of(&layout)].fetch_sub(layout.size() as i64, Relaxed);
        System.dealloc(at, layout)
    }
}

#[global_allocator]
static HEAP: Counted = Counted;

#[repr(C)] // gcspy
struct Spy { segment: *mut c_void, control: *mut c_void, fd: c_int } // gcspy

extern "C" { // gcspy
    fn gcspy_open(g: *mut Spy, name: *const c_char, kinds: *const *const c_char, count: c_int, flags: c_int, most: u64) -> c_int; // gcspy
    fn gcspy_add_named_space(g: *mut Spy, name: *const c_char, naming: c_int, most: u32) -> *mut c_void; // gcspy
    fn gcspy_add_stream(g: *mut Spy, s: *mut c_void, name: *const c_char, most: i64, how: c_int, rgb: u32) -> *mut c_void; // gcspy
    fn gcspy_begin_event(g: *mut Spy, kind: c_int) -> c_int; // gcspy
    fn gcspy_end(g: *mut Spy); // gcspy
    fn gcspy_reset(g: *mut Spy, s: *mut c_void); // gcspy
    fn gcspy_resize(s: *mut c_void, base: *const c_void, tiles: u32); // gcspy
    fn gcspy_name(g: *mut Spy, s: *mut c_void, tile: u32, text: *const c_char); // gcspy
    fn gcspy_value_array(g: *const Spy, t: *const c_void) -> *mut i64; // gcspy
}

struct Shown { spy: Spy, space: *mut c_void, live: *mut c_void, bytes: *mut c_void } // gcspy

fn text(bytes: &[u8]) -> *const c_char { bytes.as_ptr() as *const c_char } // gcspy

fn show() -> Shown { // gcspy
    let mut spy = Spy { segment: std::ptr::null_mut(), control: std::ptr::null_mut(), fd: -1 }; // gcspy
    let kinds = [text(b"Round\0")]; // gcspy
    unsafe {
        gcspy_open(&mut spy, text(b"Rust's allocator\0"), kinds.as_ptr(), 1, 1 /* GCSPY_CAN_WAIT */, 0); // gcspy
        let space = gcspy_add_named_space(&mut spy, text(b"Size classes\0"), 2 /* GCSPY_TEXTS */, CLASSES as u32); // gcspy
        let bytes = gcspy_add_stream(&mut spy, space, text(b"Bytes\0"), 0, 2 /* GCSPY_MAX_VAR */, 0xc83c32); // gcspy
        let live = gcspy_add_stream(&mut spy, space, text(b"Live\0"), 0, 2 /* GCSPY_MAX_VAR */, 0x3250c8); // gcspy
        Shown { spy, space, live, bytes } // gcspy
    }
}

fn publish(shown: &mut Shown, names: &[&CStr]) { // gcspy
    unsafe {
        if gcspy_begin_event(&mut shown.spy, 0) == 0 { return; } // gcspy
        gcspy_resize(shown.space, std::ptr::null(), CLASSES as u32); // gcspy
        gcspy_reset(&mut shown.spy, shown.space); // gcspy
        for class in 0..CLASSES { // gcspy
            gcspy_name(&mut shown.spy, shown.space, class as u32, names[class].as_ptr()); // gcspy
            *gcspy_value_array(&shown.spy, shown.live).add(class) = LIVE[class].load(Relaxed); // gcspy
            *gcspy_value_array(&shown.spy, shown.bytes).add(class) = BYTES[class].load(Relaxed); // gcspy
        }
        gcspy_end(&mut shown.spy); // gcspy
    }
}

fn main() {
    let names: Vec<std::ffi::CString> =
        (0..CLASSES).map(|class| std::ffi::CString::new(format!("up to {} bytes", 1u64 << class)).unwrap()).collect();
    let names: Vec<&CStr> = names.iter().map(|name| name.as_c_str()).collect();
    let mut shown = show(); // gcspy
    let asked = std::env::args().len() > 1;
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut dice: u64 = 1;
    let mut line = String::with_capacity(4096);
    for round in 1.. {
        for _ in 0..500 {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1);
            let size = 1usize << (dice >> 60);
            kept.push(vec![1; size + (dice >> 40) as usize % size]);
            if kept.len() > 20_000 {
                kept.swap_remove((dice >> 33) as usize % 20_000);
            }
        }
        let in_use: i64 = BYTES.iter().map(|bytes| bytes.load(Relaxed)).sum();
        publish(&mut shown, &names); // gcspy
        if !asked {
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        }
        println!("{round} {in_use}");
        io::stdout().flush().unwrap();
        line.clear();
        if io::stdin().lock().read_line(&mut line).unwrap() == 0 {
            return;
        }
    }
}
