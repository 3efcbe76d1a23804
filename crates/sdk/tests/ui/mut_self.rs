struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&mut self) {}
}

fn main() {}
