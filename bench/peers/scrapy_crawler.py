"""A crawl of one site by Scrapy: `scrapy_crawler.py URL CONNECTIONS DIR`. It keeps nothing."""

import sys
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class SiteSpider(scrapy.Spider):
    name = "site"
    links = None
    paths = []

    def parse(self, response):
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        self.paths.append(urlsplit(response.url).path)
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


def main():
    url, connections, _ = sys.argv[1:]
    SiteSpider.start_urls = [url]
    SiteSpider.links = LinkExtractor(allow_domains=[urlsplit(url).netloc])
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": int(connections),
            "CONCURRENT_REQUESTS_PER_DOMAIN": int(connections),
            "DOWNLOAD_DELAY": 0,
            "LOG_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(SiteSpider)
    process.start()
    print("\n".join(SiteSpider.paths))


main()
