//! One table of everything that was checked.

use std::fmt;

use crate::Checked;

const COLUMNS: [&str; 6] = ["list", "call", "progress", "cancel", "killed", "closed"];

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// One peer in one era, one way.
pub(crate) struct Row {
    peer: &'static str,
    era: &'static str,
    way: &'static str,
    cells: [Option<Checked>; COLUMNS.len()],
}

impl Table {
    pub(crate) fn row(
        &mut self,
        peer: &'static str,
        era: &'static str,
        way: &'static str,
    ) -> &mut Row {
        println!("{peer}, {era}: {way}");
        self.rows.push(Row {
            peer,
            era,
            way,
            cells: Default::default(),
        });
        self.rows.last_mut().expect("it was just pushed")
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for row in &self.rows {
            for (column, cell) in COLUMNS.iter().zip(&row.cells) {
                if let Some(Err(problem)) = cell {
                    let Row { peer, era, way, .. } = row;
                    problems.push(format!("{peer}, {era}, {way}: {column}: {problem}"));
                }
            }
        }
        problems
    }
}

impl Row {
    pub(crate) fn set(&mut self, column: &str, checked: Checked) {
        let column = COLUMNS.iter().position(|name| *name == column);
        self.cells[column.expect("a column of the table")] = Some(checked);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34} {:<7} {:<28}", "peer", "era", "")?;
        for column in COLUMNS {
            write!(f, " {column:<9}")?;
        }
        writeln!(f)?;
        for row in &self.rows {
            write!(f, "{:<34} {:<7} {:<28}", row.peer, row.era, row.way)?;
            for cell in &row.cells {
                let mark = match cell {
                    Some(Ok(())) => "yes",
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
