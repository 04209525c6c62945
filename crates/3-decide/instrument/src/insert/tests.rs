use super::*;
use afterlink_core::InputAddr;
use afterlink_program::{Range, Stop};
use afterlink_testkit::assembly::{START, branch, falls};

/// A function of these blocks, in two ranges.
fn function(terminators: &[Terminator]) -> Function<'static> {
    let half = terminators.len() as u64 / 2;
    let ranges = [(0, half + 1), (half + 1, terminators.len() as u64)]
        .map(|(start, end)| Range { start: InputAddr(START + start), size: end - start });
    let mut function = Function::new("f", ranges.to_vec());
    for (at, terminator) in (START..).zip(terminators) {
        function.blocks.push(Block { size: 1, ..Block::empty(InputAddr(at), *terminator) });
    }
    function
}

/// `count` blocks of several kinds; all ways lead somewhere in the function.
fn mixed(count: u32) -> Vec<Terminator> {
    let block = |block: u32| {
        let far = block.wrapping_mul(2_654_435_761) % count;
        match block % 5 {
            _ if block + 1 == count => Terminator::Stop(Stop::Return),
            0 => Terminator::Jump(Target::Block(BlockId(far))),
            1 => falls(block + 1),
            _ => branch(far, block + 1),
        }
    };
    (0..count).map(block).collect()
}

/// Adds a block on every way; gives them with where they stand.
fn add_everywhere(function: &mut Function, order: &mut Order) -> Vec<(BlockId, BlockId, BlockId, bool)> {
    let mut added = Vec::new();
    for from in function.blocks.ids().collect::<Vec<_>>() {
        let mut ways = Vec::new();
        function.for_each_successor(from, &mut |to| ways.push(to));
        ways.sort_by_key(|to| to.index());
        ways.dedup();
        for to in ways {
            let falls = falls_into(function, from, to);
            let new = add_between(function, from, to);
            order.insert(function, new, from, to, falls);
            added.push((new, from, to, falls));
        }
    }
    added
}

/// The same by lists that are searched.
fn searched(function: &Function, added: &[(BlockId, BlockId, BlockId, bool)]) -> [Vec<BlockId>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    for (id, block) in function.blocks.iter().filter(|(_, block)| block.size > 0) {
        parts[usize::from(!function.ranges[0].contains(block.input))].push(id);
    }
    let find = |parts: &[Vec<BlockId>; 2], block| {
        let part = usize::from(!parts[0].contains(&block));
        (part, parts[part].iter().position(|&b| b == block).unwrap())
    };
    for &(new, from, to, falls) in added {
        let (part, at) = find(&parts, from);
        let (to_part, to_at) = find(&parts, to);
        let leads_away = |block: BlockId| {
            matches!(function.blocks[block].terminator, Terminator::Jump(_) | Terminator::Stop(_))
        };
        if falls {
            parts[part].insert(at + 1, new);
        } else if to_at > 0 && leads_away(parts[to_part][to_at - 1]) {
            parts[to_part].insert(to_at, new);
        } else {
            parts[part].push(new);
        }
    }
    parts
}

#[test]
fn added_blocks_stand_where_they_cost_least() {
    for count in [2, 3, 10, 300] {
        let mut function = function(&mixed(count));
        let mut order = Order::of_input(&function);
        let added = add_everywhere(&mut function, &mut order);
        let fragments = order.into_fragments(FuncId(0)).map(|f| f.map_or(Vec::new(), |f| f.blocks));
        assert_eq!(fragments, searched(&function, &added));
    }
}

/// A search for each block's place takes a minute, without one it is a hundredth of a second.
#[test]
fn many_added_blocks_take_no_time() {
    let mut function = function(&mixed(200_000));
    let mut order = Order::of_input(&function);
    let since = std::time::Instant::now();
    let added = add_everywhere(&mut function, &mut order);
    assert!(added.len() > 200_000);
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
}
