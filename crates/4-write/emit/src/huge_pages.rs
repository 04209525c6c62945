//! Hot code on huge pages of its own, and the code that asks the kernel for them when the program starts.

use crate::{end_of, lead_through, start_up_section};
use afterlink_core::limits::HUGE_PAGE;
use afterlink_core::{Error, OutputAddr, Result};
use afterlink_elf::{NewSection, OutputPlan};
use afterlink_image::Image;
use afterlink_isa::{Arch, HugePages};

/// Fills the last huge page of hot code with what nobody executes: the kernel maps whole ones only.
pub(crate) fn fill(bytes: &mut Vec<u8>, arch: Arch) {
    let used = bytes.len();
    bytes.resize(used.next_multiple_of(HUGE_PAGE as usize), 0);
    arch.fill_with_traps(&mut bytes[used..]);
}

/// Adds the code, in front of where the program starts. `hot` is where hot code stands, and its bytes.
pub(crate) fn ask(
    image: &Image,
    hot: (OutputAddr, u64),
    plan: &mut OutputPlan,
    sections: &mut Vec<NewSection>,
) -> Result<()> {
    let (start, size) = (hot.0.get(), hot.1.next_multiple_of(HUGE_PAGE));
    assert!(start.is_multiple_of(HUGE_PAGE) && size > 0, "hot code starts at a huge page");
    lead_through(image, plan, |entry| {
        let code = end_of(sections).align_up(16);
        let asking = HugePages { code: code.get(), entry: entry.get(), start, size };
        let bytes = asking.assemble(image.arch).ok_or_else(|| {
            Error::new("programs of this machine cannot ask for huge pages yet")
                .next("leave out --huge-pages")
        })?;
        sections.push(start_up_section(".text.afterlink.pages", code, bytes));
        Ok(code)
    })
}
