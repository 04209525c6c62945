//! What no pass asks for yet: jump tables written elsewhere, sections of other names, data that can be written to, code on a huge
//! page. The program must run as before.

use afterlink_emit::{EmitOptions, emit};
use afterlink_image::Image;
use afterlink_program::{CodeSection, DataId, Fragment, FuncId, NewData, Placement, Program, SectionId};
use std::path::Path;
use std::process::Command;

const SOURCE: &str = r#"
#include <stdio.h>
__attribute__((noinline)) static int pick(int n) {
    switch (n) {
    case 0: return 7;
    case 1: return puts("one");
    case 2: return n * 3 + 1;
    case 3: return puts("three") + 2;
    case 4: return n ^ 21;
    case 5: return n << 4;
    case 6: return puts("six") - n;
    default: return -1;
    }
}
int main(void) {
    int sum = 0;
    for (int i = 0; i < 9; i++) sum = sum * 5 + pick(i);
    printf("%d\n", sum);
    return 0;
}
"#;

fn run(program: &Path) -> (String, Option<i32>) {
    let output = Command::new(program).output().expect("the program starts");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// The program whole, in input order: functions with tables in a section of their own, behind a huge page's start.
fn place(program: &mut Program) -> Placement {
    let mut placement = Placement::default();
    placement.sections[SectionId::HOT].alignment = 1 << 21;
    let third = placement.sections.push(CodeSection {
        name: ".text.switching".into(),
        alignment: 4096,
        suffix: "switching".into(),
    });
    let mut tables = Vec::new();
    let movable: Vec<FuncId> = program.functions.ids().collect();
    let [mut hot, mut switching] = [Vec::new(), Vec::new()];
    for id in movable {
        let function = &mut program.functions[id];
        if function.refusal.is_some() || function.blocks.is_empty() {
            continue;
        }
        for table in &mut function.jump_tables {
            let size = table.size().expect("the table is whole") as usize;
            table.place = Some((DataId(1), tables.len() as u32));
            tables.resize(tables.len() + size, 0);
        }
        let has_tables = !function.jump_tables.is_empty();
        let section = if has_tables { third } else { SectionId::HOT };
        let blocks = function.blocks.ids().collect();
        let fragment = Fragment { alignment: 16, ..Fragment::packed(id, section, blocks) };
        if has_tables { switching.push(fragment) } else { hot.push(fragment) }
    }
    assert!(!tables.is_empty(), "the test wants a jump table");
    placement.fragments = hot.into_iter().chain(switching).collect();
    let data = |name: &str, writable, bytes| NewData { name: name.into(), alignment: 64, writable, bytes };
    placement.data.push(data(".data.new", true, vec![1; 100]));
    placement.data.push(data(".rodata.tables", false, tables));
    placement
}

#[test]
fn tables_and_sections_may_stand_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (source, original) = (folder.path().join("program.c"), folder.path().join("original"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wl,--emit-relocs", "-o"]).arg(&original).arg(&source);
    assert!(gcc.status().unwrap().success());
    let bytes = std::fs::read(&original).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let mut program = afterlink_recover::recover(&image).unwrap();
    let placement = place(&mut program);
    let options = EmitOptions { trap_old_code: true, ..EmitOptions::default() };
    let mut emitted = emit(&image, &program, &placement, &options).unwrap();
    // The old table leads nowhere any more.
    for table in program.functions.iter().flat_map(|(_, f)| &f.jump_tables) {
        let at = image.file_offset(table.base).unwrap().get() as usize;
        emitted[at..at + table.size().unwrap() as usize].fill(0xcc);
    }
    let output = folder.path().join("output");
    std::fs::copy(&original, &output).unwrap();
    std::fs::write(&output, &emitted).unwrap();
    let written = Image::parse(&emitted).unwrap();
    let hot = &written.sections[written.section_named(".text").unwrap()];
    assert_eq!(hot.address.get() % (1 << 21), 0);
    let data = &written.sections[written.section_named(".data.new").unwrap()];
    assert!(
        data.is_writable() && written.section_bytes(written.section_named(".data.new").unwrap()) == [1; 100]
    );
    assert_eq!(run(&output), run(&original));
}
