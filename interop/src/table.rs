//! The table of all checks.

use std::fmt;

use crate::Checked;

const COLUMNS: [&str; 7] = [
    "list", "call", "progress", "cancel", "early", "killed", "closed",
];

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// The row of one peer in one era and one direction.
pub(crate) struct Row {
    peer: &'static str,
    wire: &'static str,
    era: &'static str,
    way: &'static str,
    cells: [Option<Checked>; COLUMNS.len()],
    notes: [Option<&'static str>; COLUMNS.len()],
}

impl Table {
    pub(crate) fn row(
        &mut self,
        peer: &'static str,
        wire: &'static str,
        era: &'static str,
        way: &'static str,
    ) -> &mut Row {
        println!("{peer}, {wire}, {era}: {way}");
        self.rows.push(Row {
            peer,
            wire,
            era,
            way,
            cells: Default::default(),
            notes: Default::default(),
        });
        self.rows.last_mut().expect("it was just pushed")
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for row in &self.rows {
            for (column, cell) in COLUMNS.iter().zip(&row.cells) {
                if let Some(Err(problem)) = cell {
                    let Row {
                        peer,
                        wire,
                        era,
                        way,
                        ..
                    } = row;
                    problems.push(format!("{peer}, {wire}, {era}, {way}: {column}: {problem}"));
                }
            }
        }
        problems
    }
}

impl Row {
    pub(crate) fn set(&mut self, column: &str, checked: Checked) {
        self.cells[index(column)] = Some(checked);
    }

    /// Shows a note instead of "yes".
    pub(crate) fn note(&mut self, column: &str, note: &'static str) {
        self.notes[index(column)] = Some(note);
    }
}

fn index(column: &str) -> usize {
    let index = COLUMNS.iter().position(|name| *name == column);
    index.expect("a column of the table")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<33} {:<6} {:<7} {:<28}", "peer", "wire", "era", "")?;
        for column in COLUMNS {
            write!(f, " {column:<9}")?;
        }
        writeln!(f)?;
        for row in &self.rows {
            let Row {
                peer,
                wire,
                era,
                way,
                ..
            } = row;
            write!(f, "{peer:<33} {wire:<6} {era:<7} {way:<28}")?;
            for (cell, note) in row.cells.iter().zip(row.notes) {
                let mark = match cell {
                    Some(Ok(())) => note.unwrap_or("yes"),
                    Some(Err(_)) => "NO",
                    None => "–",
                };
                write!(f, " {mark:<9}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
