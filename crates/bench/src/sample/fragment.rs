//! Pieces of C that the modules of the sample application are put together from.

use super::prose;
use crate::random::Random;

/// A kind of piece: the name of its function and its text, with `@places@` to fill in.
struct Fragment {
    name: &'static str,
    text: &'static str,
}

macro_rules! fragments {
    ($($name:literal),* $(,)?) => {
        [$(Fragment { name: $name, text: include_str!(concat!("fragments/", $name, ".c")) }),*]
    };
}

/// In the order in which modules take them; what keeps a compiler busy comes more often.
const FRAGMENTS: [Fragment; 20] = fragments![
    "record", "table", "text", "machine", "matrix", "sort", "record", "lexer", "machine", "text",
    "matrix", "list", "map", "machine", "record", "bits", "text", "tree", "matrix", "number",
];

/// One piece, filled in.
pub(super) struct Piece {
    /// The function to call: `uint32_t function(uint32_t)`.
    pub(super) function: String,
    pub(super) text: String,
}

/// The `number`-th piece of the application.
pub(super) fn piece(random: &mut Random, number: usize) -> Piece {
    let fragment = &FRAGMENTS[number % FRAGMENTS.len()];
    let text = fill(random, fragment.text, number);
    Piece { function: format!("{}_{number}", fragment.name), text }
}

fn fill(random: &mut Random, text: &str, number: usize) -> String {
    let (fields, fills, mixes) = members(random);
    let cases = random.between(8, 14);
    let mut filled = text.to_owned();
    for (place, value) in [
        ("n", number.to_string()),
        ("k1", (random.between(8, 31) * 2 + 1).to_string()),
        ("k2", random.between(6, 14).to_string()),
        ("k3", random.between(100, 900).to_string()),
        ("slots", [61, 97, 127, 193][random.below(4)].to_string()),
        ("side", random.between(4, 12).to_string()),
        ("gaps", ["23, 10, 4, 1", "40, 13, 4, 1", "17, 7, 3, 1"][random.below(3)].to_owned()),
        ("source", prose::words(random, 28, &format!(" = {} + ", number * 37 + 5))),
        ("rows", rows(random)),
        ("lines", lines(random)),
        ("signs", signs(random)),
        ("cases", (0..cases).map(|code| case(random, code, number)).collect()),
        ("codes", (cases + 2).to_string()),
        ("fields", fields),
        ("fills", fills),
        ("mixes", mixes),
    ] {
        let place = format!("@{place}@");
        // A list of lines brings its own line ends.
        filled =
            filled.replace(&format!("{place}\n"), &with_line_end(&value)).replace(&place, &value);
    }
    filled
}

fn with_line_end(value: &str) -> String {
    format!("{}\n", value.trim_end_matches('\n'))
}

fn rows(random: &mut Random) -> String {
    let row = |random: &mut Random| -> String {
        let numbers: Vec<String> = (0..6).map(|_| random.between(1, 9999).to_string()).collect();
        format!("\t{},\n", numbers.join(", "))
    };
    (0..random.between(4, 16)).map(|_| row(random)).collect()
}

fn lines(random: &mut Random) -> String {
    (0..random.between(3, 8))
        .map(|_| {
            let between = if random.below(2) == 0 { " " } else { ", " };
            format!("\t\t\"{}\",\n", prose::words(random, 44, between))
        })
        .collect()
}

fn signs(random: &mut Random) -> String {
    let mut signs: Vec<char> = "+-*/=<>!&|^~?:;()[]{}.".chars().collect();
    random.shuffle(&mut signs);
    signs.truncate(random.between(4, 12));
    signs
        .iter()
        .map(|sign| {
            let value = random.between(2, 250);
            format!("\tcase '{sign}':\n\t\tl->value = {value};\n\t\tbreak;\n")
        })
        .collect()
}

/// One instruction of a stack machine.
fn case(random: &mut Random, code: usize, number: usize) -> String {
    let amount = random.between(3, 29);
    let action = [
        format!("a + b * {amount}"),
        format!("a ^ b >> {amount}"),
        format!("(a << {amount} | a >> (32 - {amount})) - b"),
        format!("a > b ? a - b : b % {amount}"),
        format!("mix(a, b + {amount})"),
        format!("a / (b % {amount} + 1)"),
    ];
    format!(
        "\tcase {code}:\n\t\tmachine_{number}_push(m, {});\n\t\tbreak;\n",
        action[random.below(action.len())]
    )
}

/// Members of a structure: their declarations, how they are filled, how they go into the sum.
fn members(random: &mut Random) -> (String, String, String) {
    const KINDS: [(&str, &str); 4] =
        [("uint32_t", "u"), ("int16_t", "s"), ("uint8_t", "b"), ("uint64_t", "w")];
    let (mut fields, mut fills, mut mixes) = (String::new(), String::new(), String::new());
    for number in 0..random.between(4, 9) {
        let (kind, letter) = KINDS[random.below(KINDS.len())];
        let shift = random.between(1, 16);
        fields += &format!("\t{kind} {letter}{number};\n");
        fills += &format!("\tr->{letter}{number} = ({kind})(x >> {shift});\n");
        mixes += &format!("\th = mix(h, (uint32_t)r->{letter}{number});\n");
    }
    (fields, fills, mixes)
}
