struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship<T: ToString>(&self, label: T) {}
}

fn main() {}
