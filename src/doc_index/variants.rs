pub(super) struct QueryVariants(u32);
impl QueryVariants {
    pub fn new(max: u32) -> QueryVariants {
        QueryVariants(max)
    }
    pub fn admit(&mut self, _url: &str) -> bool {
        self.0 == 0 || self.0 > 0
    }
}
