//! Takes loaded sections, gives the first that cannot be moved: the program names it by its address, or it counts from where
//! it stands. The relocations that the linker kept say so. What is not overwritten is found where it stood, too.

use afterlink_image::{Image, Section, Symbol};

pub(crate) fn find<'s, 'a>(
    image: &Image<'a>,
    sections: &[&'s Section<'a>],
    is_overwritten: impl Fn(&Section<'a>) -> bool,
) -> Option<&'s Section<'a>> {
    let place = |address| sections.iter().position(|s| s.address == address);
    let place_of = |symbol: Symbol<'_>| {
        let section =
            image.sections.as_slice().get(usize::from(symbol.section)).filter(|_| symbol.section != 0)?;
        // The file header's name counts as one of the first section, but stays.
        place(section.address).filter(|_| is_overwritten(section) && symbol.address >= section.address)
    };
    // Hardly any symbol is one of theirs.
    let symbols = (0..).zip(image.symbols.iter());
    let named: Vec<(u32, usize)> =
        symbols.filter_map(|(row, symbol)| Some((row, place_of(symbol)?))).collect();
    let names = |symbol: u32| named.binary_search_by_key(&symbol, |n| n.0).ok().map(|i| named[i].1);
    let mut loaded = image.kept_relocations().filter(|(target, _)| image.sections[*target].is_loaded());
    let found = loaded.find_map(|(target, rows)| {
        let own = place(image.sections[target].address).filter(|_| !rows.is_empty());
        own.or_else(|| rows.iter().find_map(|row| names(row.symbol)))
    });
    found.map(|index| sections[index])
}
