struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    fn ship(&self) {}
}

fn main() {}
