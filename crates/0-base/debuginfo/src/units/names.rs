//! What names and forms of attributes tell of their values.

#![expect(non_upper_case_globals, reason = "DWARF's own names")]

use gimli::constants::*;

/// Whether a form is the number of an address.
pub(super) fn is_numbered(form: DwForm) -> bool {
    matches!(
        form,
        DW_FORM_addrx
            | DW_FORM_addrx1
            | DW_FORM_addrx2
            | DW_FORM_addrx3
            | DW_FORM_addrx4
            | DW_FORM_GNU_addr_index
    )
}

/// Whether an attribute may hold a location.
pub(super) fn names_location(name: DwAt) -> bool {
    matches!(
        name,
        DW_AT_location
            | DW_AT_string_length
            | DW_AT_return_addr
            | DW_AT_frame_base
            | DW_AT_segment
            | DW_AT_static_link
            | DW_AT_use_location
            | DW_AT_vtable_elem_location
            | DW_AT_data_location
            | DW_AT_GNU_call_site_value
            | DW_AT_GNU_call_site_target
    )
}

/// Whether an attribute's offset leads to something else than a list of locations.
pub(super) fn names_table(name: DwAt) -> bool {
    matches!(
        name,
        DW_AT_macros
            | DW_AT_macro_info
            | DW_AT_GNU_macros
            | DW_AT_str_offsets_base
            | DW_AT_addr_base
            | DW_AT_GNU_locviews
            | DW_AT_GNU_ranges_base
            | DW_AT_start_scope
    )
}
