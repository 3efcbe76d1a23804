struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&self, label: &str) {}
}

fn main() {}
