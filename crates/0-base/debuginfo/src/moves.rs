//! Where code went, as debug information asks: for runs, for single places, and for places behind a call.

use std::collections::BTreeSet;

/// A run of the input's code and where it stands in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub input: u64,
    pub input_size: u64,
    pub output: u64,
    /// A jump that was added behind the run belongs to it.
    pub output_size: u64,
    /// The size of that jump.
    pub jump_size: u64,
    pub inside: Inside,
}

/// What places inside of a piece correspond to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// The bytes correspond one to one.
    Each,
    /// Another instruction stands for one. Places inside keep their distance from its end: gcc lets locations end, and
    /// others start, a byte before a call's end where they do not outlive the call.
    FromEnd,
    /// How a block ends is written anew, and the padding there is gone: places inside are behind it.
    Behind,
}

impl Piece {
    pub(crate) fn input_end(&self) -> u64 {
        self.input + self.input_size
    }

    pub(crate) fn output_end(&self) -> u64 {
        self.output + self.output_size
    }

    /// Where what stands for the run ends, in front of the jump.
    fn own_end(&self) -> u64 {
        self.output_end() - self.jump_size
    }

    pub(crate) fn point(&self, address: u64) -> u64 {
        match (address - self.input, self.inside) {
            (0, _) => self.output,
            (distance, Inside::Each) => self.output + distance,
            (_, Inside::FromEnd) => {
                self.own_end().saturating_sub(self.input_end() - address).max(self.output)
            }
            (_, Inside::Behind) => self.output_end(),
        }
    }

    pub(crate) fn end(&self, address: u64) -> u64 {
        if address == self.input_end() { self.output_end() } else { self.point(address) }
    }
}

/// A part of a run, where it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub input: u64,
    pub start: u64,
    pub end: u64,
}

/// A function that was not written, because another one does the same. Its places are those of the other one, at the same distances from
/// the entry, and nothing of the output is its code: if two functions claimed it, debuggers and symbolizers would disagree about whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folded {
    pub input: u64,
    pub input_size: u64,
    /// Padding behind it.
    pub padding: u64,
    /// Where the other one was in the input.
    pub into: u64,
}

impl Folded {
    /// Where its padding ends.
    fn end(&self) -> u64 {
        self.input + self.input_size + self.padding
    }
}

/// A call that the callee's code stands in place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlined {
    pub call: u64,
    pub call_end: u64,
    /// The callee's code in the input, as many bytes as in the output.
    pub callee: u64,
    pub output: u64,
    pub output_size: u64,
}

impl Inlined {
    /// Start and size of the callee's code.
    pub(crate) fn callee_code(&self) -> (u64, u64) {
        (self.callee, self.output_size)
    }
}

/// Code that runs for a call besides what leads into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    pub call: u64,
    pub output: u64,
    pub output_size: u64,
}

/// All pieces, and where the input's code is.
#[derive(Default)]
pub struct Moves {
    pieces: Vec<Piece>,
    folded: Vec<Folded>,
    inlined: Vec<Inlined>,
    callees: BTreeSet<(u64, u64)>,
    beside: Vec<Beside>,
    /// Where the calls came back, and would come back, that several pieces stand in place of. Ascending.
    backs: Vec<(u64, u64)>,
    /// Each with its pieces, which stand for runs besides those above. Ascending.
    duplicates: Vec<Vec<Piece>>,
    /// Those of the output's runs among these that stand in place of a call: the return address is not in memory there. Ascending.
    in_place: Vec<(u64, u64)>,
    code: Vec<(u64, u64)>,
}

impl Moves {
    /// `pieces` do not overlap in the input, nor do functions that were `folded`; `code` are the ranges of sections with code.
    pub fn new(mut pieces: Vec<Piece>, mut folded: Vec<Folded>, mut code: Vec<(u64, u64)>) -> Self {
        pieces.retain(|p| p.input_size > 0);
        pieces.sort_unstable_by_key(|p| p.input);
        folded.sort_unstable_by_key(|f| f.input);
        code.sort_unstable();
        Self { pieces, folded, code, ..Self::default() }
    }

    /// The same with calls that code stands in place of.
    pub fn with_inlined(mut self, mut inlined: Vec<Inlined>) -> Self {
        inlined.sort_unstable_by_key(|i| i.call);
        self.callees = inlined.iter().map(Inlined::callee_code).collect();
        self.inlined = inlined;
        self
    }

    /// The same with code that runs for calls besides what leads into it, and `backs`: where these calls came back in the input, and would in the output.
    pub fn with_beside(mut self, mut beside: Vec<Beside>, mut backs: Vec<(u64, u64)>) -> Self {
        beside.sort_unstable_by_key(|b| (b.call, b.output));
        backs.sort_unstable();
        (self.beside, self.backs) = (beside, backs);
        self
    }

    /// The same with code that stands in a second place, too: the pieces of each run of it, by ascending input. Two of these are of the same
    /// run of the input, or of others.
    pub fn with_duplicates(mut self, mut duplicates: Vec<Vec<Piece>>) -> Self {
        duplicates.iter_mut().for_each(|pieces| pieces.retain(|piece| piece.input_size > 0));
        duplicates.retain(|pieces| !pieces.is_empty());
        duplicates.sort_unstable_by_key(|pieces| (pieces[0].input, pieces[0].output));
        self.duplicates = duplicates;
        self
    }

    /// The same with code in second places that stands in place of calls, by runs of the output.
    pub fn with_in_place(mut self, mut in_place: Vec<(u64, u64)>) -> Self {
        in_place.sort_unstable();
        self.in_place = in_place;
        self
    }

    /// Whether a piece stands in place of a call.
    pub(crate) fn is_in_place(&self, piece: &Piece) -> bool {
        let next = self.in_place.partition_point(|run| run.0 <= piece.output);
        next > 0 && piece.output < self.in_place[next - 1].1
    }

    /// The pieces of duplicates that have a part in a run, by duplicate.
    pub(crate) fn duplicates_in(&self, start: u64, end: u64) -> impl Iterator<Item = &[Piece]> {
        let ends = |pieces: &Vec<Piece>| pieces.last().map_or(0, Piece::input_end);
        let first = self.duplicates.partition_point(|pieces| ends(pieces) <= start);
        let count = self.duplicates[first..].partition_point(|pieces| pieces[0].input < end);
        self.duplicates[first..first + count].iter().map(move |pieces| {
            let first = pieces.partition_point(|piece| piece.input_end() <= start);
            let count = pieces[first..].partition_point(|piece| piece.input < end);
            &pieces[first..first + count]
        })
    }

    /// The parts of a run where it stands a second time, neighbours joined.
    pub(crate) fn duplicate_parts(&self, start: u64, end: u64) -> Vec<Part> {
        let mut parts = Vec::new();
        for pieces in self.duplicates_in(start, end) {
            let mut own = Vec::new();
            pieces.iter().for_each(|piece| add_part(&mut own, piece, start, end));
            parts.append(&mut own);
        }
        parts
    }

    /// Whether duplicates have instructions of a run, and not only how blocks end.
    pub(crate) fn is_copied_in_duplicates(&self, start: u64, end: u64) -> bool {
        self.duplicates_in(start, end).flatten().any(|piece| piece.inside == Inside::Each)
    }

    /// Runs of the output of such code, of the calls in a run.
    pub(crate) fn beside_in(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.beside.partition_point(|b| b.call < start);
        let inside = self.beside[first..].iter().take_while(move |b| b.call < end);
        inside.map(|b| (b.output, b.output + b.output_size))
    }

    /// Whether code stands in place of any call.
    pub fn has_inlined(&self) -> bool {
        !self.inlined.is_empty()
    }

    pub(crate) fn inlined(&self) -> &[Inlined] {
        &self.inlined
    }

    /// The calls in a run that code stands in place of, and their numbers.
    pub(crate) fn inlined_in(&self, start: u64, end: u64) -> impl Iterator<Item = (usize, &Inlined)> {
        let first = self.inlined.partition_point(|i| i.call < start);
        (first..).zip(&self.inlined[first..]).take_while(move |(_, inlined)| inlined.call < end)
    }

    /// The code that stands in place of calls: start and size of each in the input.
    pub(crate) fn callees(&self) -> impl Iterator<Item = (u64, u64)> {
        self.callees.iter().copied()
    }

    /// Whether code stood there. Linkers mark what they removed with addresses (0, 1, −1, −2) where none is.
    pub fn is_code(&self, address: u64) -> bool {
        let next = self.code.partition_point(|c| c.0 <= address);
        next > 0 && address <= self.code[next - 1].1
    }

    fn folded_at(&self, address: u64) -> Option<&Folded> {
        let next = self.folded.partition_point(|f| f.input <= address);
        self.folded[..next].last().filter(|f| address < f.end())
    }

    /// The first folded function with a part in a run.
    fn folded_in(&self, start: u64, end: u64) -> Option<&Folded> {
        let next = self.folded.partition_point(|f| f.end() <= start);
        self.folded.get(next).filter(|f| start < end && f.input < end)
    }

    /// Whether all of a run is a folded function's.
    pub(crate) fn is_folded(&self, start: u64, end: u64) -> bool {
        start < end && self.folded_at(start).is_some_and(|f| end <= f.end())
    }

    /// The run without what is folded functions'.
    fn unfolded(&self, mut start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        while let Some(folded) = self.folded_in(start, end) {
            if start < folded.input {
                runs.push((start, folded.input));
            }
            start = folded.end();
        }
        if start < end {
            runs.push((start, end));
        }
        runs
    }

    fn piece_at(&self, address: u64) -> Option<&Piece> {
        let next = self.pieces.partition_point(|p| p.input <= address);
        self.pieces[..next].last().filter(|p| address < p.input_end())
    }

    /// Where the instruction at `address` is.
    pub fn point(&self, address: u64) -> u64 {
        match self.folded_at(address).map(|f| (f, address - f.input)) {
            Some((f, distance)) if distance < f.input_size => self.point(f.into + distance),
            Some((f, _)) => self.behind(f.into + f.input_size),
            None => self.piece_at(address).map_or(address, |p| p.point(address)),
        }
    }

    /// Where the place behind the instruction is that ends at `address`: where a call comes back.
    pub fn behind(&self, address: u64) -> u64 {
        if let Some(f) = address.checked_sub(1).and_then(|last| self.folded_at(last)) {
            return self.behind(f.into + (address - f.input).min(f.input_size));
        }
        if let Ok(at) = self.backs.binary_search_by_key(&address, |back| back.0) {
            return self.backs[at].1;
        }
        let Some(piece) = address.checked_sub(1).and_then(|last| self.piece_at(last)) else { return address };
        match piece.inside {
            Inside::Each => piece.output + (address - piece.input),
            Inside::FromEnd if address == piece.input_end() => piece.own_end(),
            _ => piece.end(address),
        }
    }

    /// The pieces that have a part in a run.
    pub(crate) fn pieces_in(&self, start: u64, end: u64) -> &[Piece] {
        let first = self.pieces.partition_point(|p| p.input_end() <= start);
        let count = self.pieces[first..].partition_point(|p| p.input < end);
        &self.pieces[first..first + count]
    }

    /// Whether any byte of a run moved, or is a folded function's.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let next = self.pieces.partition_point(|p| p.input_end() <= start);
        self.pieces.get(next).is_some_and(|p| p.input < end) || self.folded_in(start, end).is_some()
    }

    /// The parts of a run in the input's order, neighbours joined. An empty run has one empty part.
    pub fn parts(&self, start: u64, end: u64) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        if start >= end {
            let place = self.point(start);
            return vec![Part { input: start, start: place, end: place }];
        }
        if self.folded_in(start, end).is_some() {
            let runs = self.unfolded(start, end);
            return runs.into_iter().flat_map(|run| self.parts(run.0, run.1)).collect();
        }
        let (mut at, mut next) = (start, self.pieces.partition_point(|p| p.input_end() <= start));
        while at < end {
            match self.pieces.get(next).filter(|p| p.input < end) {
                Some(piece) if piece.input <= at => {
                    add_part(&mut parts, piece, at, end);
                    (at, next) = (piece.input_end().min(end), next + 1);
                }
                other => {
                    let stop = other.map_or(end, |p| p.input);
                    add(&mut parts, Part { input: at, start: at, end: stop });
                    at = stop;
                }
            }
        }
        parts
    }

    /// The runs of the output that stand for one of the input: the one that it starts in first, the others ascending.
    pub fn ranges(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        // Most runs lie in one piece.
        let piece = self.piece_at(start).filter(|piece| start < end && end <= piece.input_end());
        let has_others =
            self.beside_in(start, end).next().is_some() || self.duplicates_in(start, end).next().is_some();
        if let (Some(piece), false) = (piece, has_others) {
            let run = (piece.point(start), piece.end(end));
            return if run.0 < run.1 { vec![run] } else { Vec::new() };
        }
        let mut ranges: Vec<(u64, u64)> = self.parts(start, end).iter().map(|p| (p.start, p.end)).collect();
        // Nothing is left of a folded function.
        if ranges.is_empty() && self.is_folded(start, end) {
            return ranges;
        }
        // What leads to it may be nothing.
        let place = self.point(start);
        let is_beside = self.beside_in(start, end).any(|run| (run.0..run.1).contains(&place));
        let first = if is_beside { Some(place) } else { ranges.first().map(|r| r.0) };
        ranges.extend(self.beside_in(start, end));
        // Of a jump at the end there may be nothing left but the duplicate's, which is none of the input's either.
        if !ranges.is_empty() {
            ranges.extend(self.duplicate_parts(start, end).iter().map(|part| (part.start, part.end)));
        }
        join(&mut ranges, first);
        ranges
    }
}

/// Adds a part, if there is anything of it, to those in front of it.
fn add(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ if part.start == part.end => {}
        _ => parts.push(part),
    }
}

/// Adds the part that a piece has in a run.
fn add_part(parts: &mut Vec<Part>, piece: &Piece, start: u64, end: u64) {
    let (from, to) = (start.max(piece.input), end.min(piece.input_end()));
    add(parts, Part { input: from, start: piece.point(from), end: piece.end(to) });
}

/// Sorts and joins ranges; the one that holds `first` comes first.
pub fn join(ranges: &mut Vec<(u64, u64)>, first: Option<u64>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
    if let Some(entry) = first
        && let Some(at) = ranges.iter().position(|r| r.0 <= entry && entry < r.1)
    {
        ranges[..=at].rotate_right(1);
    }
}

#[cfg(test)]
mod tests;
