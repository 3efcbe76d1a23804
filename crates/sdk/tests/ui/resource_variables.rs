struct Orders;

#[belay::server]
impl Orders {
    #[resource(uri = "orders://{id}")]
    async fn order(&self, number: u64) -> String {
        number.to_string()
    }

    #[resource(uri = "orders://all")]
    async fn all(&self, page: u64) -> String {
        page.to_string()
    }

    #[resource]
    async fn nowhere(&self) -> String {
        String::new()
    }

    #[prompt(titel = "Hello")]
    async fn hello(&self) -> String {
        String::new()
    }

    #[prompt]
    fn not_async(&self) -> String {
        String::new()
    }
}

fn main() {}
