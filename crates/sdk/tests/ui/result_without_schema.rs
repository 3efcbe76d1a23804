struct Receipt;

struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&self) -> Receipt {
        Receipt
    }
}

fn main() {}
