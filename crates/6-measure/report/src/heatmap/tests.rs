use super::*;

fn panel(title: &str, places: &[(u64, u64)]) -> Panel {
    let mut heat = Heat::default();
    places.iter().for_each(|(time, address)| heat.add(time * 1_000_000, *address));
    let region = |name: &str, start, end| Region { name: name.into(), start, end };
    let regions = vec![
        region(".plt", 0x1000, 0x1100),
        region(".text", 0x2000, 0x202000),
        region(".text.afterlink.hot", 0x300000, 0x302000),
    ];
    Panel { title: title.into(), note: "of a test".into(), regions, heat }
}

#[test]
fn lines_and_pages_are_counted_from_the_hottest() {
    let mut places = vec![(0, 0x2000); 90];
    places.extend((0..10).map(|i| (i * 20, 0x3000 + 0x1000 * i)));
    let heat = panel("x", &places).heat;
    assert_eq!(heat.samples(), 100);
    assert_eq!([0.9, 0.91, 1.0].map(|part| heat.units_that_hold(part, 64)), [1, 2, 11]);
    assert_eq!(heat.units_that_hold(1.0, 1 << 21), 1);
    assert_eq!((heat.samples_in(0x2000, 0x3000), heat.samples_in(0x2001, 0x2002)), (90, 90));
    assert_eq!(heat.time(), (0, 190_000_000));
}

#[test]
fn packed_code_is_a_narrow_band_on_the_same_scale() {
    let spread: Vec<(u64, u64)> = (0..600).map(|i| (i, 0x2000 + 0x1000 * (i % 500))).collect();
    let packed: Vec<(u64, u64)> = (0..600).map(|i| (i, 0x300000 + 16 * (i % 500))).collect();
    let functions = [
        HotFunction { name: "f<int>".into(), samples: 75, address: 0x2000, moved_to: Some(0x300000) },
        HotFunction { name: "g".into(), samples: 25, address: 0x2100, moved_to: None },
    ];
    let page = heatmap_page(&[panel("before", &spread), panel("after", &packed)], &functions);
    assert!(
        !page.contains("http") && !page.contains("NaN") && !page.contains("<script"),
        "no network, no script"
    );
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    // The section that nothing was seen in takes no room; the packed one is enlarged beside.
    assert!(!page.contains(".plt") && page.contains(".text.afterlink.hot alone, enlarged"), "{page}");
    assert!(
        page.contains("f&lt;int&gt;")
            && page.contains("75 %")
            && page.contains("0x300000")
            && page.contains("stayed")
    );
    let rows = |title: &str| {
        let picture = page.split("<h2>").find(|part| part.starts_with(title)).unwrap();
        let height = picture.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        height.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
    };
    assert!(rows("before") > 10.0 * (rows("after") - 31.0), "{} and {}", rows("before"), rows("after"));
}

#[test]
fn nothing_seen_is_no_picture_but_a_page() {
    let page = heatmap_page(&[panel("empty", &[])], &[]);
    assert!(page.contains("</html>") && !page.contains("NaN"));
}
