//! The build-id note: an output is another program, so it gets another one.

use crate::OutputPlan;
use afterlink_image::Image;
use std::borrow::Cow;

/// The bytes from the input's file offset `start` on, with the new build-id, if there is one and it stands among them.
pub(crate) fn patched<'b>(bytes: &'b [u8], plan: &OutputPlan<'_>, start: usize) -> Cow<'b, [u8]> {
    let here = start..start + bytes.len();
    if plan.build_id.is_none() || offset(plan.image).is_none_or(|at| !here.contains(&at)) {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    patch(&mut bytes, plan, start);
    Cow::Owned(bytes)
}

/// Writes the new build-id, if there is one, into bytes that were copied from the input's file offset `start` on.
pub(crate) fn patch(bytes: &mut [u8], plan: &OutputPlan<'_>, start: usize) {
    let Some(id) = &plan.build_id else { return };
    let at = offset(plan.image).and_then(|at| at.checked_sub(start));
    if let Some(place) = at.and_then(|at| bytes.get_mut(at..at.checked_add(id.len())?)) {
        place.copy_from_slice(id);
    }
}

/// Where the build-id stands in the input.
pub(crate) fn offset(image: &Image<'_>) -> Option<usize> {
    // The image hands out a part of its own bytes.
    let start = (image.build_id.as_ptr() as usize).checked_sub(image.bytes.as_ptr() as usize)?;
    (!image.build_id.is_empty() && start + image.build_id.len() <= image.bytes.len()).then_some(start)
}
