//! A crawl of one site by spider-rs: `spider-crawler URL CONNECTIONS DIR`. It keeps nothing.

use spider::website::Website;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, _] = args.as_slice() else {
        eprintln!("spider-crawler URL CONNECTIONS DIR");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut website = Website::new(url);
        website.with_respect_robots_txt(false).with_delay(0).with_limit(u32::MAX).with_depth(0);
        website.with_concurrency_limit(connections.parse().ok());
        let mut pages = website.subscribe(1_000_000);
        let listing = tokio::spawn(async move {
            let mut paths = Vec::new();
            while let Ok(page) = pages.recv().await {
                let path = page.get_url().splitn(4, '/').nth(3).unwrap_or_default().to_string();
                if page.status_code == 200 {
                    paths.push(path);
                }
            }
            paths
        });
        website.crawl().await;
        website.unsubscribe();
        println!("{}", listing.await.unwrap_or_default().join("\n"));
    });
}
