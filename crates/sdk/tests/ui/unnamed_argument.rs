struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&self, (from, to): (u32, u32)) {}
}

fn main() {}
