"""A bucket as boto3 sees it: `make` makes it, `read` prints every response in its WARC files as a line of JSON."""
import hashlib
import json
import sys

import boto3
from botocore.config import Config
from warcio.archiveiterator import ArchiveIterator

what, endpoint, bucket = sys.argv[1:]
retries = Config(retries={"total_max_attempts": 10}, s3={"addressing_style": "path"})
s3 = boto3.client("s3", endpoint_url=endpoint, config=retries, region_name="us-east-1")
if what == "make":
    s3.create_bucket(Bucket=bucket)
else:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"]
            for record in ArchiveIterator(body, check_digests="raise"):
                payload = record.raw_stream.read()
                if record.rec_type == "response":
                    head = record.rec_headers.get_header
                    print(json.dumps({
                        "key": entry["Key"],
                        "url": head("WARC-Target-URI"),
                        "date": head("WARC-Date"),
                        "sha1": hashlib.sha1(payload).hexdigest(),
                    }))
